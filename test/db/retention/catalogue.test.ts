import assert from 'node:assert/strict'
import { PURGES } from '../../../db/retention/purges.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const BY_HAND = 'one row for each thing that a person or a caller set up; deleted by them'

/** Tables that no purge empties, each with the reason. */
const DO_NOT_GROW: Record<string, string> = {
  agx_migrations: 'one row per migration',
  agx_migrations_lock: "one row, of Knex's own",
  api_keys: BY_HAND,
  custom_field_definitions: BY_HAND,
  database_ids: 'one row for each time that the database was moved',
  deleted_files: 'one row per content that is to be deleted; deleted with it',
  erasures: 'one row for each erased person: the receipt is the proof',
  event_cancels:
    'one row per event and workflow whose open runs it may cancel; deleted when it was compared with all',
  exchange_rates: 'one row for each currency and day that somebody set',
  incoming_webhooks: BY_HAND,
  knowledge_collections: BY_HAND,
  knowledge_documents: 'at most KNOWLEDGE.documents of an organization; deleted by their authors',
  knowledge_embeddings: 'at most one of a collection; deleted with it',
  knowledge_passages: 'at most KNOWLEDGE.passages of an organization; deleted with their documents',
  knowledge_vectors: 'at most one of a passage; deleted with it',
  list_changes: 'one row per change of a record of a kind with lists; deleted when it was compared with them',
  lists: BY_HAND,
  mail_suppressions: 'one row for each address that unsubscribed, bounced or complained',
  memberships: BY_HAND,
  organization_storage: 'one row of each organization',
  organizations: BY_HAND,
  outgoing_webhooks: BY_HAND,
  pipelines: 'one row of each organization',
  pool_workers: 'one row per worker of a pool; dead ones are deleted by those that live',
  relays: 'one row per worker; dead ones are deleted by those that live',
  reports: BY_HAND,
  run_claims: 'one row per run that a relay starts; deleted when it has started',
  secrets: BY_HAND,
  sweep_state: 'one row',
  temporal_server: 'one row',
  users: BY_HAND,
  views: BY_HAND,
  witnesses: 'one row per task queue',
  workflow_cancel_events: 'one row for each event that a version of a workflow names',
  workflow_samples: 'at most 50 of a workflow; deleted with it',
  workflow_schedules: 'one row per workflow with a schedule; deleted with its Schedule in Temporal',
  workflow_triggers: 'the triggers of active workflows; replaced by each activation',
  workflow_versions: 'one row for each save by a person; runs refer to them',
  workflows: BY_HAND,
}

describe('the catalogue', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('has a purge for every table, or a reason why it does not grow', async () => {
    const tables = await db.asOwner(async (client) => {
      const { rows } = await client.query<{ name: string }>(
        `select relname as name from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by relname`,
      )
      return rows.map(({ name }) => name)
    })
    const purged = new Set(PURGES.flatMap((purge) => purge.tables))
    assert.deepEqual(
      tables.filter((table) => !purged.has(table)),
      Object.keys(DO_NOT_GROW),
    )
    assert.deepEqual(
      [...purged].filter((table) => !tables.includes(table)),
      [],
    )
  })

  it('has the index of every purge', async () => {
    const found = await db.asOwner(async (client) => {
      const { rows } = await client.query<{ indexname: string }>(
        "select indexname from pg_indexes where schemaname = 'public'",
      )
      return new Set(rows.map(({ indexname }) => indexname))
    })
    assert.deepEqual(
      PURGES.filter(({ index }) => !found.has(index)).map(({ name }) => name),
      [],
    )
  })
})
