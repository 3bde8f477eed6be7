import { retentionOf } from '../access/organization.ts'
import { byAge, byRange } from '../retention/purge.ts'
import { DELIVERY_DAYS } from './deliveries.ts'

const LAST_VIOLATION = 'greatest(failures_since, breaches_since, blocked_until)'

export const incomingPurges = [
  byRange({
    name: 'incoming logs',
    tables: ['incoming_logs'],
    keeps: 'log_retention_days',
    index: 'incoming_logs_age',
    rows: 1_000,
    table: 'incoming_logs',
    retention: retentionOf('log_retention_days'),
    ended: 'true',
  }),
  byRange({
    name: 'incoming replays',
    tables: ['incoming_replays'],
    keeps: 'log_retention_days after their end',
    index: 'incoming_replays_pkey',
    rows: 500,
    table: 'incoming_replays',
    retention: retentionOf('log_retention_days'),
    ended: 't.ended_at < :before',
  }),
  byAge({
    name: 'incoming deliveries',
    tables: ['incoming_deliveries'],
    keeps: `${DELIVERY_DAYS} days`,
    index: 'incoming_deliveries_age',
    rows: 2_000,
    table: 'incoming_deliveries',
    expired: `created_at < now() - interval '${DELIVERY_DAYS} days'`,
    order: 'created_at',
  }),
  byAge({
    name: 'items of polled sources',
    tables: ['incoming_items'],
    keeps: '90 days after a source has listed it last',
    index: 'incoming_items_age',
    rows: 2_000,
    table: 'incoming_items',
    expired: "seen_at < now() - interval '90 days'",
    order: 'seen_at',
  }),
  byAge({
    name: 'incoming responses',
    tables: ['incoming_responses'],
    keeps: '24 hours',
    index: 'incoming_responses_age',
    rows: 500,
    table: 'incoming_responses',
    expired: "created_at < now() - interval '24 hours'",
    order: 'created_at',
  }),
  byAge({
    name: 'incoming sources',
    tables: ['incoming_sources'],
    keeps: 'a day after the last violation',
    index: 'incoming_sources_age',
    rows: 1_000,
    table: 'incoming_sources',
    expired: `${LAST_VIOLATION} < now() - interval '1 day'`,
    order: LAST_VIOLATION,
  }),
]
