import {
  deleteValue,
  getValue,
  incrementValue,
  listValues,
  type StoredValue,
  setValue,
} from '../../db/key-values/key-values.ts'
import type { KeyValue, KeyValues } from '../../workflows/effects/key-values.ts'
import { type EffectHost, transactionOf } from './define.ts'
import { storedOnce } from './stored-once.ts'

/** The organization's values. */
export function keyValuesOf(host: EffectHost): KeyValues {
  const tx = transactionOf(host)
  const once = storedOnce(host)
  return {
    async get(key) {
      const found = await getValue(tx, key)
      return found && shown(found)
    },
    set: (key, value, { ttlMs, onlyIfAbsent }) =>
      once(['set', key, value, ttlMs, onlyIfAbsent], async () => {
        const { stored, ...found } = await setValue(tx, key, value, { seconds: seconds(ttlMs), onlyIfAbsent })
        return { ...shown(found), stored }
      }),
    increment: (key, by, ttlMs) =>
      once(['increment', key, by, ttlMs], async () =>
        shown(await incrementValue(tx, key, by, seconds(ttlMs))),
      ),
    delete: (key) => once(['delete', key], async () => ({ key, deleted: await deleteValue(tx, key) })),
    async list(prefix, limit) {
      const { data, has_more } = await listValues(tx, prefix, limit)
      return { data: data.map(shown), has_more }
    },
  }
}

const seconds = (ms: number | null) => (ms === null ? null : ms / 1000)

const shown = ({ key, value, expires_at }: StoredValue): KeyValue => ({
  key,
  value,
  expires_at: expires_at?.toISOString() ?? null,
})
