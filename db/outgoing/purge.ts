import { retentionOf } from '../access/organization.ts'
import { byRange } from '../retention/purge.ts'

export const outgoingPurges = [
  byRange({
    name: 'deliveries',
    tables: ['deliveries', 'delivery_attempts'],
    keeps: 'log_retention_days after their end; held ones stay',
    index: 'deliveries_pkey',
    rows: 500,
    table: 'deliveries',
    retention: retentionOf('log_retention_days'),
    ended: 't.ended_at < :before',
  }),
  byRange({
    name: 'outgoing replays',
    tables: ['outgoing_replays'],
    keeps: 'log_retention_days after their end',
    index: 'outgoing_replays_pkey',
    rows: 500,
    table: 'outgoing_replays',
    retention: retentionOf('log_retention_days'),
    ended: 't.ended_at < :before',
  }),
  byRange({
    name: 'events',
    tables: ['events'],
    keeps:
      'log_retention_days, and as long as their deliveries and the runs that they may cancel are not decided',
    index: 'events_pkey',
    rows: 1_000,
    table: 'events',
    retention: retentionOf('log_retention_days'),
    // With a limit: PostgreSQL may plan "not exists" as one scan of all deliveries.
    ended: `t.matched_at < :before and (
      select d.id from deliveries d where d.organization_id = t.organization_id and d.event_id = t.id limit 1) is null
      and not exists (select from event_cancels c where c.organization_id = t.organization_id and c.event_id = t.id)`,
  }),
]
