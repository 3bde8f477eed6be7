import { kindNames } from '../records/kinds/index.ts'

/**
 * What the storage of an organization consists of: the tables by kind, all with `organization_id` first in their primary
 * key. `storage.test.ts` requires every table of tenants to be here or in `UNCOUNTED`.
 */
export const STORED = {
  records: [
    ...kindNames,
    'record_history',
    'associations',
    'merged_records',
    'alternate_keys',
    'custom_field_definitions',
    'custom_field_values',
    'sensitive_values',
    'bulk_jobs',
    'bulk_job_items',
    'erasures',
    'exchange_rates',
    'views',
    'lists',
    'list_members',
    'reports',
  ],
  knowledge: ['knowledge_collections', 'knowledge_documents', 'knowledge_passages', 'knowledge_vectors'],
  files: ['files', 'imports', 'import_pieces', 'import_errors', 'import_keys', 'exports', 'export_pieces'],
  workflows: ['workflows', 'workflow_versions', 'workflow_samples'],
  runs: [
    'runs',
    'run_nodes',
    'run_loops',
    'run_iterations',
    'run_segments',
    'run_effects',
    'run_waits',
    'run_signals',
    'node_turns',
    'run_batches',
    'run_batch_items',
  ],
  logs: [
    'events',
    'incoming_logs',
    'incoming_replays',
    'incoming_responses',
    'incoming_items',
    'deliveries',
    'delivery_attempts',
    'outgoing_replays',
    'audit_log',
    'idempotency_keys',
  ],
  key_values: ['key_values'],
} as const satisfies Record<string, readonly string[]>

export type StoredKind = keyof typeof STORED
export const STORED_KINDS = Object.keys(STORED) as StoredKind[]

/** Tables of small rows, whose number other limits bound. */
export const UNCOUNTED = [
  'account_mails',
  'api_keys',
  'approval_mails',
  'event_cancels',
  'incoming_deliveries',
  'incoming_sources',
  'incoming_webhooks',
  'invitations',
  'knowledge_embeddings',
  'limit_months',
  'limit_windows',
  'list_changes',
  'deleted_files',
  'mail_suppressions',
  'memberships',
  'oauth_grants',
  'oauth_tokens',
  'organization_storage',
  'outgoing_webhooks',
  'password_resets',
  'pipelines',
  'run_claims',
  'schedule_fires',
  'secrets',
  'sessions',
  'workflow_cancel_events',
  'workflow_schedules',
  'workflow_triggers',
] as const
