import { byAge } from '../retention/purge.ts'

export const accessPurges = [
  byAge({
    name: 'idempotency keys',
    tables: ['idempotency_keys'],
    keeps: '24 hours',
    index: 'idempotency_keys_age',
    rows: 2_000,
    table: 'idempotency_keys',
    expired: "created_at < now() - interval '24 hours'",
    order: 'created_at',
  }),
  byAge({
    name: 'limit windows',
    tables: ['limit_windows'],
    // A webhook's burst reads the window before the current one.
    keeps: 'an hour after their end',
    index: 'limit_windows_age',
    rows: 2_000,
    table: 'limit_windows',
    expired: "ends_at < now() - interval '1 hour'",
    order: 'ends_at',
  }),
  byAge({
    name: 'limit months',
    tables: ['limit_months'],
    keeps: 'a year after their end',
    index: 'limit_months_age',
    rows: 2_000,
    table: 'limit_months',
    expired: "ends_at < now() - interval '1 year'",
    order: 'ends_at',
  }),
  byAge({
    name: 'sessions',
    tables: ['sessions'],
    keeps: 'until they expire',
    index: 'sessions_age',
    rows: 1_000,
    table: 'sessions',
    expired: 'expires_at < now()',
    order: 'expires_at',
  }),
]
