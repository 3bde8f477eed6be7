import assert from 'node:assert/strict'
import { SYSTEM } from '../../db/model/actor.ts'
import { advanceBulkJob, bulkJobs } from '../../db/records/bulk/advance.ts'
import { createKey } from '../support/api.ts'
import { createMember } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { signIn } from '../support/session.ts'
import { recordStatements } from '../support/statements.ts'
import { until } from '../support/until.ts'
import { withApiAndWorker } from '../support/with-api.ts'
import { startWorker } from '../support/worker.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = any

describe('bulk jobs', () => {
  const on = withApiAndWorker()
  const send = async (method: string, path: string, body?: object, key?: string): Promise<Json> => {
    const answer = await on.api.request(method, path, { ...(body && { body }), ...(key && { key }) })
    return { status: answer.status, ...answer.body }
  }
  const create = (kind: string, body: object) => send('POST', `/v1/objects/${kind}`, body)
  const get = (kind: string, id: string) => send('GET', `/v1/objects/${kind}/${id}`)
  const patch = (kind: string, id: string, body: object) => send('PATCH', `/v1/objects/${kind}/${id}`, body)
  const ended = async (job: Json): Promise<Json> => {
    assert.equal(job.status, 'running', JSON.stringify(job))
    return until(async () => {
      const now = await send('GET', `/v1/bulk-jobs/${job.id}`)
      return now.status === 'completed' && now
    })
  }
  const bulk = async (kind: string, body: object) =>
    ended(await send('POST', `/v1/objects/${kind}/bulk`, { ...body, confirm: true }))
  const undo = async (path: string) => ended(await send('POST', `${path}/undo`, { confirm: true }))
  const counts = ({ total, done, refused }: Json) => [total, done, refused]

  it('change nothing without confirm, then every record that matches, once', async () => {
    for (let n = 0; n < 120; n++) await create('companies', { name: `Mill ${n}`, industry: 'Milling' })
    const other = await create('companies', { name: 'Other', industry: 'Baking' })
    const body = { action: 'update', query: { industry: 'milling' }, data: { tags: ['old'] } }
    const preview = await send('POST', '/v1/objects/companies/bulk', body)
    assert.deepEqual(
      [preview.status, preview.preview.count, preview.preview.record_ids.length],
      ['confirmation_required', 120, 10],
    )
    const job = await bulk('companies', body)
    assert.deepEqual(counts(job), [120, 120, 0])
    const tagged = await send('GET', '/v1/objects/companies?tags[has]=old&count=exact')
    assert.equal(tagged.total, 120)
    assert.ok(tagged.data.every(({ version }: Json) => version === 2))
    assert.equal((await get('companies', other.id)).version, 1)
  })

  it('hand over what a removed member held, to several in turn', async () => {
    const member = (name: string) => createMember(on.db, on.api.organizationId, name)
    const [leaver, ann, ben] = [await member('Leaver'), await member('Ann'), await member('Ben')]
    const owner = await signIn(on.db, on.api)
    for (let n = 0; n < 6; n++) await create('companies', { name: `Account ${n}`, owner_id: leaver })
    const task = await create('tasks', { title: 'call', assignee_id: leaver })
    const refused = await owner('DELETE', `/members/${leaver}`)
    assert.deepEqual([refused.status, refused.body.error.param], [409, 'hand_over'])
    assert.match(refused.body.error.message, /owner_id of companies, assignee_id of tasks/)
    for (const heir of [leaver, '01890a5d-ac96-774b-bcce-b302099a8061', 'x'])
      assert.equal((await owner('DELETE', `/members/${leaver}?hand_over=${heir}`)).status, 422, heir)
    const { status, body } = await owner('DELETE', `/members/${leaver}?hand_over=${ann},${ben}`)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.hand_over_jobs.length, 2)
    for (const id of body.hand_over_jobs) assert.equal((await ended({ id, status: 'running' })).refused, 0)
    const owned = async (id: string) =>
      (await send('GET', `/v1/objects/companies?owner_id=${id}&count=exact`)).total
    assert.deepEqual([await owned(leaver), await owned(ann), await owned(ben)], [0, 3, 3])
    assert.ok([ann, ben].includes((await get('tasks', task.id)).assignee_id))
    const cleared = await owner('DELETE', `/members/${ben}?hand_over=nobody`)
    assert.equal(cleared.status, 200)
    for (const id of cleared.body.hand_over_jobs) await ended({ id, status: 'running' })
    assert.deepEqual([await owned(ben), await owned(ann)], [0, 3])
  })

  it('say at once what no record could take', async () => {
    const id = '01890a5d-ac96-774b-bcce-b302099a8061'
    for (const [body, loc] of [
      [{ action: 'reassign', owner_id: id }, ['body', 'owner_id']],
      [{ action: 'update', data: { company_id: id } }, ['body', 'data', 'company_id']],
    ] as const)
      for (const confirm of [false, true]) {
        const refused = await send('POST', '/v1/objects/contacts/bulk', { ...body, query: {}, confirm })
        assert.deepEqual([refused.status, refused.detail?.[0].loc], [422, loc], JSON.stringify(refused))
      }
  })

  it('are undone, except in records that were changed since', async () => {
    const [a, b] = [
      await create('deals', { name: 'Bulk a', stage: 'won', closed_at: '2020-01-31T00:00:00Z', amount: '5' }),
      await create('deals', { name: 'Bulk b', stage: 'lead', custom_fields: { x: 1, y: 2 } }),
    ]
    const query = { 'name[starts_with]': 'Bulk' }
    const data = { stage: 'lost', lost_reason: 'Price', custom_fields: { x: 7 } }
    const job = await bulk('deals', { action: 'update', query, data })
    assert.deepEqual(counts(job), [2, 2, 0])
    await patch('deals', b.id, { lost_reason: 'Time' })
    const preview = await send('POST', `/v1/bulk-jobs/${job.id}/undo`, {})
    assert.deepEqual(preview.preview, { created: 0, updated: 2, deleted: 0 })
    const undone = await undo(`/v1/bulk-jobs/${job.id}`)
    assert.deepEqual(counts(undone), [2, 1, 1])
    assert.deepEqual(undone.refusals, [
      { object: 'deal', id: b.id, error: { code: 'conflict', message: 'changed since: lost_reason' } },
    ])
    const now = await get('deals', a.id)
    assert.deepEqual(
      [now.stage, now.closed_at, now.lost_reason, now.custom_fields],
      ['won', a.closed_at, null, {}],
    )
    assert.equal((await get('deals', b.id)).stage, 'lost')
    // An undo is a job like the others.
    assert.deepEqual(counts(await undo(`/v1/bulk-jobs/${undone.id}`)), [1, 1, 0])
    assert.equal((await get('deals', a.id)).stage, 'lost')
  })

  it('delete, and restore with the references that the deletion cleared', async () => {
    const company = await create('companies', { name: 'Gone', industry: 'Gone' })
    const contact = await create('contacts', { first_name: 'Ada', company_id: company.id })
    const job = await bulk('companies', { action: 'delete', query: { industry: 'gone' } })
    assert.equal((await get('companies', company.id)).error.type, 'not_found')
    assert.equal((await get('contacts', contact.id)).company_id, null)
    assert.deepEqual(counts(await undo(`/v1/bulk-jobs/${job.id}`)), [2, 2, 0])
    assert.equal((await get('contacts', contact.id)).company_id, company.id)
  })

  it('reassign, and say which records they could not change', async () => {
    const { data: users } = await send('GET', '/v1/users')
    const note = await create('notes', { body: 'reassigned' })
    const only = await create('contacts', { last_name: 'Reassigned' })
    const wrong = await bulk('contacts', {
      action: 'update',
      query: { last_name: 'Reassigned' },
      data: { last_name: null },
    })
    assert.deepEqual(counts(wrong), [1, 0, 1])
    assert.equal(wrong.refusals[0].id, only.id)
    if (users.length > 0) {
      const right = { action: 'reassign', query: { body: 'reassigned' }, owner_id: users[0].id }
      assert.deepEqual(counts(await bulk('notes', right)), [1, 1, 0])
      assert.equal((await get('notes', note.id)).owner_id, users[0].id)
    }
  })

  it('refuse what they cannot do, all at once, and keys without the scopes', async () => {
    const answer = await send('POST', '/v1/objects/deals/bulk', {
      action: 'update',
      query: { colour: 'red', limit: 1 },
      data: { stage: 'nope', nmae: 'x' },
      owner_id: null,
    })
    assert.equal(answer.status, 422)
    assert.deepEqual(answer.detail.map(({ loc }: Json) => loc.join('.')).toSorted(), [
      'body.data.nmae',
      'body.data.stage',
      'body.owner_id',
      'body.query.colour',
      'body.query.limit',
    ])
    const { key } = await createKey(on.db, on.api.organizationId, { scopes: ['deals:write'] })
    const data = { company_id: null }
    const linking = await send('POST', '/v1/objects/deals/bulk', { action: 'update', query: {}, data }, key)
    assert.deepEqual(linking.error.type, 'insufficient_scope')
  })

  it('are undone only by keys that may change the references that they changed', async () => {
    const company = await create('companies', { name: 'Referred' })
    const contact = await create('contacts', { last_name: 'Linked', company_id: company.id })
    const query = { last_name: 'Linked' }
    const job = await bulk('contacts', { action: 'update', query, data: { company_id: null } })
    const path = `/v1/bulk-jobs/${job.id}/undo`
    const { key } = await createKey(on.db, on.api.organizationId, { scopes: ['contacts:write'] })
    const refused = await send('POST', path, { confirm: true }, key)
    assert.deepEqual([refused.error?.type, refused.status], ['insufficient_scope', 403])
    assert.match(refused.error.message, /companies:write/)
    const { key: both } = await createKey(on.db, on.api.organizationId, {
      scopes: ['contacts:write', 'companies:write'],
    })
    await ended(await send('POST', path, { confirm: true }, both))
    assert.equal((await get('contacts', contact.id)).company_id, company.id)
  })

  it('undo an import: what it created and changed, with its companies, unless they were changed since', async () => {
    const imports = importsOf(on.api)
    await create('contacts', { email: 'known@undo.example', first_name: 'Known', job_title: 'Baker' })
    const rows = ['known@undo.example;Known;Miller;Stub', 'new@undo.example;New;Miller;Stub']
    const file = [
      'email;first_name;job_title;company_name',
      ...rows,
      'kept@undo.example;Kept;;Kept Ltd',
    ].join('\n')
    const done = await imports.run({ entity: 'contacts', mode: 'upsert', by: 'email' }, `${file}\n`)
    assert.deepEqual([done.status, done.progress.created, done.progress.updated], ['completed', 2, 1])
    const found = async (email: string) => (await send('GET', `/v1/objects/contacts?email=${email}`)).data[0]
    const kept = await found('kept@undo.example')
    await patch('contacts', kept.id, { last_name: 'Now' })
    const undone = await undo(`/v1/imports/${done.id}`)
    assert.deepEqual(counts(undone), [5, 3, 2], JSON.stringify(undone))
    assert.equal(await found('new@undo.example'), undefined)
    const known = await found('known@undo.example')
    assert.deepEqual([known.job_title, known.company_id], ['Baker', null])
    assert.equal((await found('kept@undo.example')).company_id, kept.company_id)
    const companies = await send('GET', '/v1/objects/companies?name[in]="Stub","Kept Ltd"')
    assert.deepEqual(
      companies.data.map(({ name }: Json) => name),
      ['Kept Ltd'],
    )
    const dry = await imports.run({ entity: 'contacts', dry_run: true }, 'email\ndry@undo.example\n')
    assert.equal((await send('POST', `/v1/imports/${dry.id}/undo`, {})).status, 409)
  })

  it('go on after a worker was killed between two pages, and change no record twice', async () => {
    await on.worker.stop()
    for (let n = 0; n < 7; n++) await create('tasks', { title: `Killed ${n}` })
    const query = { 'title[starts_with]': 'Killed' }
    const started = await send('POST', '/v1/objects/tasks/bulk', {
      action: 'update',
      query,
      data: { priority: 'high' },
      confirm: true,
    })
    const [claimed] = await bulkJobs.claim(on.db.system, 1)
    const page = () => on.db.tenant(on.api.organizationId, SYSTEM, (tx) => advanceBulkJob(tx, claimed!, 3, 4))
    assert.deepEqual([await page(), await page(), await page()], [true, true, true])
    const half = await send('GET', `/v1/bulk-jobs/${started.id}`)
    assert.deepEqual([half.total, half.listing, half.done, half.pending], [7, false, 3, 4])
    const sent = recordStatements()
    await send('GET', `/v1/bulk-jobs/${started.id}`)
    const counted = sent.take().filter((statement) => statement.includes('bulk_job_items'))
    sent.stop()
    assert.deepEqual(counted, [], 'a client that polls does not have its items counted')
    assert.deepEqual(await bulkJobs.claim(on.db.system, 1), [], 'it is leased')
    await on.db.system('bulk_jobs').update({ lease_until: new Date(Date.now() - 1) })
    on.worker = await startWorker(on.db, { secretsKey: on.api.secretsKey })
    assert.deepEqual(counts(await ended(half)), [7, 7, 0])
    const { data } = await send('GET', '/v1/objects/tasks?title[starts_with]=Killed&priority=high')
    assert.deepEqual(
      data.map(({ version }: Json) => version),
      [2, 2, 2, 2, 2, 2, 2],
    )
  })

  describe('whose filters get another meaning before all records are listed', () => {
    const CHANGED = {
      message:
        'a custom field of the query was deleted, defined or given another type before all records were listed',
      hint: 'no record was changed: check the query, and start another bulk job',
    }
    before(() => on.worker.stop())
    after(async () => {
      on.worker = await startWorker(on.db, { secretsKey: on.api.secretsKey })
    })
    const define = (name: string, type: string) =>
      send('POST', '/v1/custom-fields/tasks', { name, type }).then(({ status }) => assert.equal(status, 201))
    const undefine = (name: string) =>
      send('DELETE', `/v1/custom-fields/tasks/${name}`).then(({ status }) => assert.equal(status, 200))
    const started = async (query: object): Promise<Json> => {
      const body = { action: 'update', query, data: { priority: 'low' }, confirm: true }
      const job = await send('POST', '/v1/objects/tasks/bulk', body)
      assert.equal(job.status, 'running', JSON.stringify(job))
      const [claimed] = await bulkJobs.claim(on.db.system, 1)
      assert.equal(claimed!.id, job.id)
      const page = () =>
        on.db.tenant(on.api.organizationId, SYSTEM, (tx) => advanceBulkJob(tx, claimed!, 3, 4))
      return { id: job.id, page }
    }
    const failed = async ({ id, page }: Json, listed: number) => {
      assert.equal(await page(), false)
      const job = await send('GET', `/v1/bulk-jobs/${id}`)
      assert.deepEqual(
        [job.status, job.listing, job.total, job.done, job.refused, job.pending, job.error],
        ['failed', false, listed, 0, 0, 0, CHANGED],
      )
      assert.notEqual(job.ended_at, null)
      const { preview } = await send('POST', `/v1/bulk-jobs/${id}/undo`, {})
      assert.deepEqual(preview, { created: 0, updated: 0, deleted: 0 })
      assert.equal((await send('GET', '/v1/objects/tasks?priority=low&count=exact')).total, 0)
    }

    it('fail between two pages, and change none of the listed records', async () => {
      await define('score', 'number')
      for (let n = 0; n < 7; n++)
        await create('tasks', { title: `Scored ${n}`, custom_fields: { score: 100 + n } })
      const job = await started({ 'custom_fields.score[gte]': 100 })
      assert.equal(await job.page(), true)
      await undefine('score')
      await failed(job, 4)
    })

    it('fail before the first page, where the filters of another type would be valid too', async () => {
      await define('size', 'number')
      for (let n = 0; n < 3; n++)
        await create('tasks', { title: `Sized ${n}`, custom_fields: { size: 9 + n } })
      const job = await started({ 'custom_fields.size': '9' })
      await undefine('size')
      await failed(job, 0)
      // Defined only after the job was confirmed.
      const sorted = await started({ sort: 'custom_fields.size' })
      await define('size', 'number')
      await failed(sorted, 0)
    })

    it('are completed if only other definitions change', async () => {
      const job = await started({ 'custom_fields.size[gt]': 9 })
      await define('unrelated', 'text')
      assert.deepEqual([await job.page(), await job.page()], [true, false])
      const now = await send('GET', `/v1/bulk-jobs/${job.id}`)
      assert.deepEqual([now.status, now.error, ...counts(now)], ['completed', null, 2, 2, 0])
    })
  })
})
