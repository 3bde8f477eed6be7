import { retentionOf } from '../access/organization.ts'
import { byAge, byRange, firstIdAt } from '../retention/purge.ts'

const PARTS = [
  'run_nodes',
  'run_loops',
  'run_iterations',
  'run_segments',
  'run_effects',
  'run_waits',
  'approval_mails',
  'run_signals',
  'node_turns',
]
const TEST_RETENTION = "interval '7 days'"

export const runPurges = [
  byRange({
    name: 'runs',
    tables: ['runs', ...PARTS],
    keeps: 'run_retention_days after their end',
    index: 'runs_pkey',
    rows: 500,
    table: 'runs',
    retention: retentionOf('run_retention_days'),
    ended: 't.ended_at < :before',
  }),
  byAge({
    name: 'run batches',
    tables: ['run_batches', 'run_batch_items'],
    keeps: '30 days after their end',
    index: 'run_batches_age',
    rows: 1,
    table: 'run_batches',
    expired: "ended_at < now() - interval '30 days'",
    order: 'ended_at',
  }),
  byAge({
    name: 'fires of schedules',
    tables: ['schedule_fires'],
    keeps: '30 days',
    index: 'schedule_fires_age',
    rows: 500,
    table: 'schedule_fires',
    expired: "decided_at < now() - interval '30 days'",
    order: 'decided_at',
  }),
  byAge({
    name: 'node tests',
    tables: ['runs', ...PARTS],
    keeps: '7 days',
    index: 'runs_node_tests',
    rows: 500,
    table: 'runs',
    expired: `kind = 'node_test' and ended_at is not null and id < ${firstIdAt(`now() - ${TEST_RETENTION}`)}`,
    order: 'id',
  }),
]
