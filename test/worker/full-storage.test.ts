import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { compareWithPlans } from '../../db/storage/usage.ts'
import { type EmbeddingEndpoint, startEmbeddingEndpoint } from '../support/embedding.ts'
import { importsOf } from '../support/imports.ts'
import { until } from '../support/until.ts'
import { withApi } from '../support/with-api.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = any

/** The error of the organization of the test. */
const FULL = /^the organization stores 1000 bytes, and its plan allows 1$/

describe('jobs of an organization that became full after they were accepted', () => {
  const suite = withApi({ EGRESS_ALLOW: '127.0.0.0/8' })
  let worker: TestWorker | undefined
  let endpoint: EmbeddingEndpoint
  before(async () => {
    endpoint = await startEmbeddingEndpoint()
  })
  after(async () => {
    await worker?.stop()
    await endpoint.close()
  })

  const send = async (method: string, path: string, body?: object): Promise<Json> => {
    const answer = await suite.api.request(method, `/v1${path}`, body ? { body } : {})
    ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const ended = (path: string): Promise<Json> =>
    until(async () => {
      const now = await send('GET', path)
      return (now.embedding ?? now).status.match(/completed|failed/) && now
    })
  const allow = async (storage_bytes: number) => {
    const { system } = suite.db
    const organization_id = suite.api.organizationId
    const limits = JSON.stringify({ storage_bytes })
    await system('organizations').where({ id: organization_id }).update({ limits })
    await system('organization_storage')
      .insert({ organization_id, written: 1_000 })
      .onConflict('organization_id')
      .ignore()
    await compareWithPlans(system)
  }

  it('write nothing more, and say why; deletions go on, and an import is resumed', async () => {
    const imports = importsOf(suite.api)
    for (const name of ['a', 'b', 'c']) await send('POST', '/objects/companies', { name, industry: 'old' })
    await send('POST', '/objects/notes', { body: 'to delete' })
    const { body: imported } = await imports.prepare({ entity: 'contacts' }, 'email\nada@example.com\n')
    equal((await imports.start(imported.id)).status, 200)
    const exported = await send('POST', '/exports', { entity: 'companies' })
    const update = { action: 'update', query: { industry: 'old' }, data: { industry: 'new' }, confirm: true }
    const listing = await send('POST', '/objects/companies/bulk', update)
    const listed = await send('POST', '/objects/companies/bulk', update)
    // As after its listing, which a worker has made before.
    const { rows } = await suite.db.system.raw(
      `insert into bulk_job_items (organization_id, job_id, entity, record_id, step)
       select organization_id, ?, 'companies', id, 0 from companies where organization_id = ? returning record_id`,
      [listed.id, suite.api.organizationId],
    )
    equal(rows.length, 3)
    await suite.db.system('bulk_jobs').where({ id: listed.id }).update({ listing: false, total: 3 })
    const deletion = await send('POST', '/objects/notes/bulk', { action: 'delete', query: {}, confirm: true })
    const collection = await send('POST', '/knowledge/collections', { name: 'Help' })
    const documents = `/knowledge/collections/${collection.id}/documents`
    await send('POST', documents, { title: 'Payments', body: 'Refunds take five days.' })
    const embedding = { base_url: endpoint.base_url, model: 'small' }
    await send('PUT', `/knowledge/collections/${collection.id}/embedding`, embedding)

    await allow(1)
    worker = await startWorker(suite.db)
    const { status, error } = await ended(`/imports/${imported.id}`)
    deepEqual([status, error.message.match(FULL)?.length], ['failed', 1])
    match((await ended(`/exports/${exported.id}`)).error.message, FULL)
    const failed = await ended(`/bulk-jobs/${listing.id}`)
    deepEqual([failed.status, failed.done], ['failed', 0])
    match(failed.error.message, /^the organization stores 1000 bytes, and its plan allows 1: delete what/)
    equal(failed.error.hint, 'no record was changed: start another bulk job')
    const refused = await ended(`/bulk-jobs/${listed.id}`)
    deepEqual([refused.done, refused.refused, refused.refusals[0].error.code], [0, 3, 'quota_exceeded'])
    equal((await ended(`/bulk-jobs/${deletion.id}`)).done, 1)
    match((await ended(`/knowledge/collections/${collection.id}`)).embedding.error.message, FULL)
    equal(endpoint.requests.length, 0)
    equal((await send('GET', '/objects/companies?industry=new&count=exact')).total, 0)

    const resume = () => suite.api.request('POST', `/v1/imports/${imported.id}/resume`, { body: {} })
    equal((await resume()).body.error?.type, 'quota_exceeded')
    await allow(1_000_000)
    equal((await resume()).status, 200)
    equal((await ended(`/imports/${imported.id}`)).progress.created, 1)
  })
})
