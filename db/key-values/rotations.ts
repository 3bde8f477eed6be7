import { KEY_VALUES } from '../../workflows/shared/limits.ts'
import { conflict } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockValue, setValue } from './key-values.ts'

/** Turns taken by people, in a key value: anybody who may write it can begin the rotation anew. */

interface Rotation {
  /** The number of turns that were taken. */
  turn: number
  /** The last turn of each person. */
  last: Record<string, number>
}

const keyOf = (name: string) => `rotation:${name}`

/**
 * The candidate whose last turn is the longest ago, the first of those who had none; it takes the turn. The row lock
 * gives concurrent transactions different turns. `candidates` is not empty. Throws `conflict` for a value of another
 * form under the key.
 */
export async function takeTurn(tx: Tenant, name: string, candidates: string[]): Promise<string> {
  const key = keyOf(name)
  const found = await lockValue(tx, key, { turn: 0, last: {} } satisfies Rotation)
  if (!isRotation(found)) throw conflict(`the key value ${key} is not that of a rotation: delete it`)
  const { last } = found
  const turnOf = (id: string) => (Object.hasOwn(last, id) ? last[id]! : 0)
  const next = candidates.reduce((first, one) => (turnOf(one) < turnOf(first) ? one : first))
  const turn = found.turn + 1
  await setValue(
    tx,
    key,
    { turn, last: recent({ ...last, [next]: turn }) },
    { seconds: null, onlyIfAbsent: false },
  )
  return next
}

/** People of whom the turns are kept: 50 bytes each fit into a value. */
const MOST = Math.floor(KEY_VALUES.bytes / 64)

function recent(last: Rotation['last']): Rotation['last'] {
  const all = Object.entries(last)
  if (all.length <= MOST) return last
  return Object.fromEntries(all.sort((a, b) => b[1] - a[1]).slice(0, MOST))
}

function isRotation(value: unknown): value is Rotation {
  const { turn, last } = Object(value) as Partial<Rotation>
  return (
    typeof turn === 'number' &&
    typeof last === 'object' &&
    last !== null &&
    Object.values(last).every((one) => typeof one === 'number')
  )
}
