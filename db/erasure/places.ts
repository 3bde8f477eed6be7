import { kindNames, kinds } from '../model/records/kinds/index.ts'

/**
 * What becomes of a row that names the person:
 * - `redact`: its values lose the person, see db/model/erasure/redact.ts; a row whose key has the person is deleted.
 * - `delete`: the row goes.
 * - `clear`: an entry of the log stays without its content.
 * - `review`: it stays, and the receipt lists it, because only people can decide: texts, settings, other records.
 */
export type Treatment = 'redact' | 'delete' | 'clear' | 'review'

/** A table that is searched for a person. */
export interface Place {
  table: string
  /** The name of its rows in the receipt. */
  object: string
  treatment: Treatment
  /** SQL: the row is about the contact itself, whatever its content; `:ids` are its ids. */
  own?: string
  /** What becomes of such a row. Default: `treatment`. */
  ownTreatment?: Treatment | 'run'
  /** SQL: the row is in work, and is treated after that. */
  busy?: string
  /** The column with the id for the receipt. Default: `id`. */
  id?: string
}

const place = (table: string, object: string, treatment: Treatment, more: Partial<Place> = {}): Place => ({
  table,
  object,
  treatment,
  ...more,
})

/**
 * Every table of organizations that may name a person, in the order in which they are searched: first runs, which make
 * others. `NOT_SEARCHED` has the others; `test/worker/erasure.test.ts` requires each table to be in one of the two.
 */
export const PLACES: readonly Place[] = [
  place('runs', 'run', 'redact', { own: 'record_id = any(:ids)', ownTreatment: 'run' }),
  place('run_nodes', 'run', 'redact', { id: 'run_id' }),
  place('run_loops', 'run', 'redact', { id: 'run_id' }),
  place('run_iterations', 'run', 'redact', { id: 'run_id' }),
  place('run_segments', 'run', 'redact', { id: 'run_id' }),
  place('run_effects', 'run', 'redact', { id: 'run_id' }),
  place('run_waits', 'run', 'redact', { id: 'run_id' }),
  place('run_signals', 'run', 'redact', { id: 'run_id' }),
  place('run_batches', 'run_batch', 'redact', { busy: 'ended_at is null' }),
  place('run_batch_items', 'run_batch', 'redact', { id: 'batch_id' }),
  place('workflow_samples', 'sample', 'redact', { id: 'workflow_id' }),
  place('key_values', 'stored_value', 'redact', { id: 'key' }),
  place('deliveries', 'delivery', 'redact', { own: 'subject_id = any(:ids)', ownTreatment: 'delete' }),
  place('delivery_attempts', 'delivery_attempt', 'redact', { id: 'delivery_id' }),
  place('events', 'event', 'redact', { own: 'subject_id = any(:ids)', ownTreatment: 'delete' }),
  place('incoming_logs', 'incoming_log', 'clear', { own: 'record_id = any(:ids)' }),
  place('incoming_deliveries', 'incoming_answer', 'redact', { id: 'webhook_id' }),
  place('incoming_responses', 'incoming_answer', 'redact'),
  place('incoming_replays', 'incoming_replay', 'redact', { busy: 'ended_at is null' }),
  place('record_history', 'history_entry', 'redact', { id: 'record_id' }),
  place('associations', 'association', 'redact', { id: 'a_id' }),
  place('bulk_jobs', 'bulk_job', 'redact', { busy: 'ended_at is null' }),
  place('bulk_job_items', 'bulk_job', 'redact', { id: 'job_id' }),
  place('imports', 'import', 'redact', { busy: "status in ('queued', 'running')" }),
  place('import_errors', 'import_error', 'delete', { id: 'import_id' }),
  place('exports', 'export', 'redact', { busy: "status in ('queued', 'running')" }),
  place('idempotency_keys', 'stored_answer', 'redact', { id: 'caller_id' }),
  place('limit_windows', 'limit', 'delete'),
  // Those of other records are sealed, so they are not found.
  place('sensitive_values', 'sensitive_value', 'review', {
    own: 'record_id = any(:ids)',
    ownTreatment: 'delete',
    id: 'record_id',
  }),
  ...kindNames.map((kind) => place(kind, kinds[kind].object, 'review')),
  place('files', 'file', 'review'),
  place('knowledge_collections', 'knowledge_collection', 'review'),
  place('knowledge_documents', 'knowledge_document', 'review'),
  place('custom_field_definitions', 'custom_field', 'review', { id: 'entity' }),
  place('views', 'view', 'review'),
  place('lists', 'list', 'review'),
  place('reports', 'report', 'review'),
  place('workflows', 'workflow', 'review'),
  place('workflow_versions', 'workflow', 'review', { id: 'workflow_id' }),
  place('workflow_triggers', 'workflow', 'review', { id: 'workflow_id' }),
  place('workflow_schedules', 'workflow', 'review', { id: 'workflow_id' }),
  place('incoming_webhooks', 'incoming_webhook', 'review'),
  place('outgoing_webhooks', 'outgoing_webhook', 'review'),
  place('mail_suppressions', 'mail_suppression', 'review'),
  place('approval_mails', 'approval_mail', 'review'),
  place('account_mails', 'account_mail', 'review'),
  place('invitations', 'invitation', 'review'),
  place('api_keys', 'key', 'review'),
  place('audit_log', 'audit_entry', 'review'),
  place('organizations', 'organization', 'review'),
]

/** Tables that are not searched, each with the reason. */
export const NOT_SEARCHED: Record<string, string> = {
  alternate_keys: 'copies of what the record has, which is searched',
  custom_field_values: 'copies of what the record has, which is searched',
  deleted_files: 'ids',
  erasures: 'the receipts',
  event_cancels: 'ids',
  exchange_rates: 'rates of currencies',
  export_pieces: 'searched as files',
  import_keys: 'hashes; deleted with the file of their import',
  import_pieces: 'searched as files',
  incoming_items: 'hashes',
  incoming_sources: 'addresses of networks, kept for hours',
  knowledge_embeddings: 'settings of models',
  knowledge_passages: 'copies of what the document has, which is searched',
  knowledge_vectors: 'numbers made from passages, deleted with them',
  limit_months: 'counters of organizations',
  list_changes: 'ids',
  list_members: 'ids',
  memberships: 'ids',
  merged_records: 'ids',
  node_turns: 'ids',
  oauth_grants: 'of the users of the organization',
  oauth_tokens: 'hashes of tokens',
  organization_storage: 'counters',
  outgoing_replays: 'periods',
  password_resets: 'hashes of tokens',
  pipelines: 'names of stages',
  run_claims: 'ids',
  schedule_fires: 'times of schedules',
  secrets: 'sealed, and for the workflows of the organization',
  sessions: 'of the users of the organization',
  workflow_cancel_events: 'names of events',
}
