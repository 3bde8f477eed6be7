import { byAge } from '../retention/purge.ts'

export const keyValuePurges = [
  byAge({
    name: 'key values',
    tables: ['key_values'],
    keeps: 'until they expire; at most KEY_VALUES.count without an expiry',
    index: 'key_values_age',
    rows: 1_000,
    table: 'key_values',
    expired: 'expires_at < now()',
    order: 'expires_at',
  }),
]
