import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { routes } from '../../../api/v1/route-table.ts'
import { importPurges } from '../../../db/imports/purge.ts'
import { STORED, UNCOUNTED } from '../../../db/model/storage/tables.ts'
import { purgeBatch } from '../../../db/retention/run.ts'
import { StorageMeter } from '../../../db/storage/measure.ts'
import { addWritten } from '../../../db/storage/usage.ts'
import { withApp } from '../../support/with-api.ts'
import { queueRun } from '../../support/worker.ts'

/** Operations that change what is there, or write small rows: allowed while an organization is full. */
const ALLOWED =
  /^(?:merge|erase|restore|reveal|delete|cancel|pause|resume|stop|terminate|migrate|activate|deactivate|validate|query|updateCustomField|updatePipeline|updateKnowledgeCollection|resendDelivery|retryDelivery|re(?:schedule|target)Delivery|create(?:Incoming)?Replay|(?:create|update|rotate|test|capture|preview|propose)(?:In|Out)(?:com|go)ing)/

describe('the storage of an organization', () => {
  const suite = withApp()
  const meter = () => new StorageMeter(suite.db.system)
  const limit = (storage_bytes: number) =>
    suite.db
      .system('organizations')
      .where({ id: suite.api.organizationId })
      .update({ limits: JSON.stringify({ storage_bytes, retention_days: 90 }) })
  const storage = async () => (await suite.app('GET', '/usage')).body.storage
  /** What the processes and the sweep do every few seconds. */
  const settle = async () => {
    await suite.db.sent.flush()
    await suite.db.system('organization_storage').update({ due_at: new Date(0), measured_at: null })
    await meter().run(() => true)
  }

  before(() => suite.db.sent.reportTo((bytes) => addWritten(suite.db.system, bytes)))

  it('knows every table of organizations', async () => {
    const { rows } = await suite.db.system.raw(
      `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
       where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace
         and a.attname = 'organization_id' and not a.attisdropped`,
    )
    const known = [...Object.values(STORED).flat(), ...UNCOUNTED] as string[]
    deepEqual(known.toSorted(), rows.map(({ name }: { name: string }) => name).sort())
  })

  it('is shown by kind, and follows what is written and deleted', async () => {
    await settle()
    const before = await storage()
    const text = 'word '.repeat(4_000)
    const { body } = await suite.api.request('POST', '/v1/objects/notes', { body: { body: text } })
    await suite.db.sent.flush()
    const written = await storage()
    ok(written.used >= before.used + text.length, JSON.stringify([before, written]))
    deepEqual(written.measured, before.measured)
    await settle()
    const measured = await storage()
    ok(measured.measured.records > (before.measured.records ?? 0))
    equal(measured.limit, null)
    await suite.api.request('DELETE', `/v1/objects/notes/${body.id}`)
  })

  it('is the same in pages as at once', async () => {
    const { organizationId } = suite.api
    await suite.db.system.raw(
      `insert into key_values (organization_id, key, value) select ?, 'k' || i, '"x"' from generate_series(1, 10500) i`,
      [organizationId],
    )
    await settle()
    const { measured } = await storage()
    const { rows } = await suite.db.system.raw(
      'select count(*)::integer as count from key_values where organization_id = ?',
      [organizationId],
    )
    equal(rows[0].count, 10_500)
    ok(measured.key_values >= 10_500 * 100 && measured.key_values < 10_500 * 300, String(measured.key_values))
    await suite.db.system('key_values').where({ organization_id: organizationId }).delete()
    await settle()
    equal((await storage()).measured.key_values, 0)
  })

  it('refuses what stores more at the limit, with the figures, and allows deletions', async () => {
    const { body: note } = await suite.api.request('POST', '/v1/objects/notes', { body: { body: 'a' } })
    const run = await queueRun(suite.db, suite.api.organizationId, {
      nodes: [{ id: 'wait', type: 'wait_for_signal', config: { name: 'go' } }],
    })
    await limit(1)
    await settle()
    const signal = (body: object) => suite.api.request('POST', `/v1/runs/${run}/signal`, { body })
    equal((await signal({ name: 'go', payload: 'x'.repeat(60_000) })).body.error?.type, 'quota_exceeded')
    equal((await signal({ name: 'go' })).status, 200)
    const itself = `/v1/objects/notes/${note.id}/associations/notes/${note.id}`
    const linked = await suite.api.request('POST', itself, { body: {} })
    equal(linked.body.error?.type, 'quota_exceeded')
    const refused = await suite.api.request('POST', '/v1/objects/notes', { body: { body: 'b' } })
    deepEqual([refused.status, refused.body.error.type], [429, 'quota_exceeded'])
    match(refused.body.error.message, /^the organization stores \d+ bytes, and its plan allows 1$/)
    equal(refused.headers.get('retry-after'), '60')
    const batch = (operations: object[]) =>
      suite.api.request('POST', '/v1/objects/notes/batch', { body: { operations } })
    equal((await batch([{ op: 'create', data: { body: 'c' } }])).status, 429)
    equal((await batch([{ op: 'delete', id: note.id }])).status, 200)
    // It makes room after an hour, not only when it can no longer be restored.
    const row = suite.db.system('notes').where({ id: note.id })
    await settle()
    equal((await row.clone()).length, 1)
    await row.clone().update({ deleted_at: new Date(Date.now() - 3_700_000) })
    await settle()
    equal((await row.clone()).length, 0)
    await limit(10_000_000)
    await settle()
    equal((await suite.api.request('POST', '/v1/objects/notes', { body: { body: 'b' } })).status, 201)
  })

  it('keeps the requests of webhooks at the limit in the log, from which they can be replayed', async () => {
    const { body: webhook } = await suite.app('POST', '/webhooks/incoming', { name: 'Form' })
    await limit(1)
    await settle()
    const send = () =>
      fetch(webhook.url.replace(/^.*(?=\/webhooks)/, suite.api.url), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Webhook-Secret': webhook.secret },
        body: JSON.stringify({ email: 'ada@example.com' }),
      })
    const answer = await send()
    equal(answer.status, 429)
    equal(((await answer.json()) as { error: string }).error, 'quota_exceeded')
    const { body: logs } = await suite.app('GET', `/webhooks/incoming/${webhook.id}/logs`)
    deepEqual([logs.data[0].status, logs.data[0].error], ['Blocked', 'quota_exceeded'])
    const replay = () =>
      suite.app('POST', `/webhooks/incoming/${webhook.id}/replays`, { log_id: logs.data[0].id })
    equal((await replay()).body.error?.type, 'quota_exceeded')
    await limit(10_000_000)
    await settle()
    equal((await replay()).body.result?.outcome, 'created')
    equal((await send()).status, 200)
  })

  it('says of each operation that writes whether it stores more', () => {
    const writes = routes.filter(({ method }) => ['POST', 'PUT', 'PATCH'].includes(method))
    const allowed = writes.filter((route) => !('grows' in route)).map(({ id }) => id)
    deepEqual(
      allowed.filter((id) => !ALLOWED.test(id)),
      [],
    )
  })

  it('has no import that was not started within a day', async () => {
    const { body } = await suite.api.request('POST', '/v1/imports', { body: { entity: 'contacts' } })
    await suite.api.request('PUT', `/v1/imports/${body.id}/file`, {
      body: 'email\na@example.com\n',
      headers: { 'Content-Type': 'text/csv' },
    })
    const uploads = () => suite.db.system('imports').whereNotNull('upload_id').where({ id: body.id })
    const age = (hours: number) =>
      suite.db
        .system('imports')
        .where({ id: body.id })
        .update({ updated_at: new Date(Date.now() - hours * 3_600_000) })
    const files = importPurges[0]!
    await age(23)
    await purgeBatch(suite.db.system, files)
    equal((await uploads()).length, 1)
    await age(25)
    await purgeBatch(suite.db.system, files)
    equal((await uploads()).length, 0)
  })

  it('keeps data no longer than the plan allows', async () => {
    const refused = await suite.app('PATCH', '/organization', { run_retention_days: 3_650 })
    deepEqual([refused.status, refused.body.error.type], [403, 'plan_limit'])
    equal(refused.body.error.message, 'run_retention_days: the plan keeps data for at most 90 days')
  })
})
