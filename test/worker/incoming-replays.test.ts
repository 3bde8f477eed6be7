import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { Compute } from '../../api/compute/compute.ts'
import { advanceReplay, incomingReplays } from '../../db/incoming/replays.ts'
import { createKey } from '../support/api.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../support/incoming.ts'
import { apiThreads } from '../support/threads.ts'
import { until } from '../support/until.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

const rule = (from: string, to: string) => ({ from, to })
const mapping = (...rules: object[]) => ({ mode: 'manual', rules })
const BY_MAIL = mapping(rule('mail', 'email'), rule('who', 'first_name'))

describe('a replay of an incoming webhook', () => {
  let on: IncomingTest
  let worker: TestWorker | undefined
  const compute = new Compute(apiThreads)
  before(async () => {
    on = await startIncoming()
  })
  after(async () => {
    await worker?.stop()
    await compute.close()
    await on?.close()
  })

  const since = () => new Date(Date.now() - 3_600_000).toISOString()
  const replay = (webhook: TestWebhook, body: object, status?: number) =>
    on.app('POST', `/webhooks/incoming/${webhook.id}/replays`, body, status)
  const count = async (table: string, where: object = {}) =>
    Number((await on.db.system(table).where(where).count({ count: '*' }).first())!.count)
  const contacts = () => count('contacts', { organization_id: on.api.organizationId })
  const mapBody = compute.mapBody.bind(compute)
  const advance = (id: string) =>
    incomingReplays.takeTurn(on.db.system, { organization_id: on.api.organizationId, id }, (replay, keepOn) =>
      advanceReplay(on.db, replay, { mapBody, secretsKey: on.api.secretsKey }, keepOn),
    )
  /** Only with this field are its payloads valid. */
  const strict = (values: object = {}) =>
    on.createWebhook({ field_mapping: mapping(rule('nothing', 'email')), ...values })

  it('of one failed entry shows the difference first, creates the record once, and is logged', async () => {
    const webhook = await strict()
    assert.equal((await on.send(webhook, { mail: 'one@x.test', who: 'One' })).status, 400)
    const [{ id: log_id }] = await on.logs(webhook)
    const before = await contacts()
    const dry = await replay(webhook, { log_id, field_mapping: BY_MAIL, dry_run: true })
    const [example] = dry.body.examples
    assert.deepEqual(
      [dry.body.object, dry.body.total, example.outcome],
      ['incoming_replay_preview', 1, 'created'],
    )
    assert.deepEqual(example.changes.email, { from: null, to: 'one@x.test' })
    assert.deepEqual(
      [example.record_id, await contacts(), (await on.logs(webhook)).length],
      [null, before, 1],
    )
    const still = await replay(webhook, { log_id })
    assert.deepEqual([still.body.failed, still.body.result.error], [1, 'validation_failed'])
    const { body } = await replay(webhook, { log_id, field_mapping: BY_MAIL })
    assert.deepEqual([body.status, body.created, body.result.outcome], ['completed', 1, 'created'])
    assert.equal((await on.contact(body.result.record_id)).email, 'one@x.test')
    const [entry] = await on.logs(webhook)
    assert.deepEqual(
      [entry.status, entry.action, entry.replay_of, entry.replay_id, entry.record_id],
      ['Success', 'Created', log_id, body.id, body.result.record_id],
    )
    const again = await replay(webhook, { log_id, field_mapping: BY_MAIL })
    assert.equal(again.body.result.outcome, 'skipped')
    assert.match(again.body.result.message, /an equal request was accepted/)
    assert.equal(await contacts(), before + 1)
  })

  it('of an accepted entry updates its record, and repeats neither its note nor its workflow', async () => {
    const workflow = await on.api.request('POST', '/v1/workflows', {
      body: { yaml: 'name: Replayed\nnodes:\n  one: { type: set_fields, config: { fields: { a: 1 } } }\n' },
    })
    const { workflow_id } = workflow.body
    await on.api.request('POST', `/v1/workflows/${workflow_id}/activate`)
    const webhook = await on.createWebhook({ workflow_id, deduplication: { action: 'Create Anyway' } })
    const sent = await on.send(webhook, {
      name: 'Ada L',
      message: 'Hello',
      town: 'Bern',
      email: 'ada@x.test',
    })
    const [{ id: log_id }] = await on.logs(webhook)
    const before = [await contacts(), await count('notes'), await count('runs')]
    const field_mapping = mapping(
      rule('email', 'email'),
      rule('town', 'job_title'),
      rule('message', 'note_content'),
    )
    const dry = await replay(webhook, { log_id, field_mapping, dry_run: true })
    const [{ changes, outcome, starts_workflow, record_id }] = dry.body.examples
    assert.deepEqual([outcome, starts_workflow, record_id], ['updated', false, sent.body.record_id])
    assert.deepEqual(changes, { job_title: { from: null, to: 'Bern' } })
    const { body } = await replay(webhook, { log_id, field_mapping })
    assert.deepEqual([body.updated, body.result.record_id], [1, sent.body.record_id])
    assert.equal((await on.contact(sent.body.record_id)).job_title, 'Bern')
    assert.deepEqual([await contacts(), await count('notes'), await count('runs')], before)
  })

  it('and the retry of the sender have one effect, in either order', async () => {
    const webhook = await strict()
    const headers = { 'X-GitHub-Delivery': 'first' }
    const payload = { mail: 'retry@x.test' }
    await on.send(webhook, payload, headers)
    const [{ id: log_id }] = await on.logs(webhook)
    const { body } = await replay(webhook, { log_id, field_mapping: BY_MAIL })
    assert.equal(body.created, 1)
    const retry = await on.send(webhook, payload, headers)
    assert.deepEqual([retry.body.message, retry.body.record_id], ['already received', body.result.record_id])

    const other = await strict({ deduplication: { action: 'Create Anyway' } })
    await on.send(other, payload, { 'X-GitHub-Delivery': 'second' })
    const [{ id }] = await on.logs(other)
    await on.app('PATCH', `/webhooks/incoming/${other.id}`, { field_mapping: BY_MAIL })
    assert.equal((await on.send(other, payload, { 'X-GitHub-Delivery': 'second' })).body.action, 'created')
    // The stored responses are gone after a day, the log stays.
    await on.db.system('incoming_deliveries').delete()
    const late = await replay(other, { log_id: id })
    assert.equal(late.body.result.outcome, 'skipped')
  })

  it('twenty at once of one entry create one record', async () => {
    const webhook = await strict({ deduplication: { action: 'Create Anyway' } })
    await on.send(webhook, { mail: 'many@x.test' })
    const [{ id: log_id }] = await on.logs(webhook)
    const all = await Promise.all(
      Array.from({ length: 20 }, () => replay(webhook, { log_id, field_mapping: BY_MAIL })),
    )
    assert.equal(all.filter(({ body }) => body.created === 1).length, 1)
    assert.equal(await count('contacts', { email_lower: 'many@x.test' }), 1)
  })

  it('reads the stored text of a form in another charset', async () => {
    const webhook = await strict()
    const type = 'application/x-www-form-urlencoded; charset=iso-8859-1'
    await on.send(webhook, Buffer.from('mail=l1@x.test&who=J%F6rg+\xe9', 'latin1'), { 'Content-Type': type })
    const [{ id: log_id }] = await on.logs(webhook)
    const { body } = await replay(webhook, { log_id, field_mapping: BY_MAIL })
    assert.equal((await on.contact(body.result.record_id)).first_name, 'Jörg é')
  })

  it('refuses what nobody proved to have sent, what the log has not whole, and what is not there', async () => {
    const webhook = await strict()
    await on.send(webhook, { mail: 'x@x.test' }, { 'X-Webhook-Secret': 'wrong' })
    const [unverified] = await on.logs(webhook)
    const refused = await replay(webhook, { log_id: unverified.id }, 409)
    assert.match(refused.body.error.message, /did not prove to have the secret/)
    assert.match(unverified.replay_problem, /did not prove to have the secret/)
    const accepting = await on.createWebhook()
    await on.send(accepting, { email: 'long@x.test', text: 'x'.repeat(70_000) })
    const [long] = await on.logs(accepting)
    assert.deepEqual(
      [long.status, long.replay_problem],
      ['Success', 'only the beginning of its payload is stored'],
    )
    const { message } = (await replay(accepting, { log_id: long.id }, 409)).body.error
    assert.match(message, /only the beginning of its payload is stored/)
    const whole = await replay(accepting, { since: since(), include: ['succeeded'], dry_run: true })
    assert.deepEqual([whole.body.total, whole.body.incomplete], [0, 1])
    await replay(webhook, { log_id: webhook.id }, 404)
    const { body } = await replay(webhook, { since: since(), dry_run: true })
    assert.equal(body.total, 0)
    for (const bad of [{}, { log_id: long.id, since: since() }, { since: '2999-01-01T00:00:00Z' }])
      assert.deepEqual((await replay(webhook, bad, 422)).body.detail[0].loc, ['body', 'since'])
    const field_mapping = mapping(rule('a', 'emial'))
    await replay(webhook, { log_id: long.id, field_mapping }, 422)
    await on.app('POST', `/webhooks/incoming/${webhook.id}/deactivate`)
    await replay(webhook, { since: since() }, 409)
  })

  it('has the whole of a long payload that failed, with its secrets masked, also beyond what the log shows', async () => {
    const webhook = await strict()
    const payload = {
      who: '\u{1f600}',
      text: `${'\u{1f600}'.repeat(40_000)}${'x'.repeat(60_000)}`,
      secret: webhook.secret,
      mail: 'long1@x.test',
    }
    const packed = gzipSync(JSON.stringify(payload))
    const headers = { 'Content-Encoding': 'gzip', 'Content-Type': 'application/json' }
    assert.equal((await on.send(webhook, packed, headers)).status, 400)
    const [{ id: log_id, replay_problem }] = await on.logs(webhook)
    assert.equal(replay_problem, null)
    const path = `/webhooks/incoming/${webhook.id}/logs/${log_id}`
    const detail = (await on.app('GET', path)).body
    assert.deepEqual([[...detail.payload].length, detail.payload_truncated], [65_536, true])
    const field_mapping = mapping(...BY_MAIL.rules, rule('secret', 'job_title'))
    const { body } = await replay(webhook, { log_id, field_mapping })
    assert.equal(body.created, 1)
    const { email, first_name, job_title } = await on.contact(body.result.record_id)
    assert.deepEqual([email, first_name, job_title], ['long1@x.test', '\u{1f600}', '[masked]'])
    const [entry] = await on.logs(webhook)
    assert.deepEqual(
      [entry.replay_of, entry.replay_problem],
      [log_id, 'only the beginning of its payload is stored'],
    )
  })

  it('has a compressed request that exceeded the rate limit, and of a long one only the beginning', async () => {
    const webhook = await on.createWebhook({ rate_limit: 1 })
    const packed = (n: number, text = '') => gzipSync(JSON.stringify({ email: `packed${n}@x.test`, text }))
    const headers = { 'Content-Encoding': 'gzip', 'Content-Type': 'application/json' }
    for (let n = 0; n < 4; n++) await on.send(webhook, packed(n, n === 3 ? 'x'.repeat(70_000) : ''), headers)
    const [long, packedOne] = await on.logs(webhook)
    assert.deepEqual(
      [long, packedOne].map(({ error, replay_problem }) => [error, replay_problem]),
      [
        ['rate_limited', 'only the beginning of its payload is stored'],
        ['rate_limited', null],
      ],
    )
    const { body } = await replay(webhook, { log_id: packedOne.id })
    assert.equal((await on.contact(body.result.record_id)).email, 'packed2@x.test')
  })

  it('says in a dry run how many entries would only be skipped', async () => {
    const webhook = await strict()
    for (const mail of ['dry1', 'dry2', 'dry2', 'dry3']) await on.send(webhook, { mail: `${mail}@x.test` })
    const [{ id: log_id }] = await on.logs(webhook)
    const dry = async (body: object) => {
      const { total, skipped, incomplete } = (
        await replay(webhook, { dry_run: true, field_mapping: BY_MAIL, ...body })
      ).body
      return { total, skipped, incomplete }
    }
    // Two requests are equal: the second is skipped after the first.
    assert.deepEqual(await dry({ since: since() }), { total: 4, skipped: 1, incomplete: 0 })
    assert.deepEqual(await dry({ log_id }), { total: 1, skipped: 0, incomplete: 0 })
    await replay(webhook, { log_id, field_mapping: BY_MAIL })
    assert.deepEqual(await dry({ since: since() }), { total: 4, skipped: 2, incomplete: 0 })
    assert.deepEqual(await dry({ log_id }), { total: 1, skipped: 1, incomplete: 0 })
    const { body } = await replay(webhook, { since: since(), field_mapping: BY_MAIL })
    await advance(body.id)
    const done = (await on.app('GET', `/webhooks/incoming/${webhook.id}/replays/${body.id}`)).body
    assert.deepEqual([done.total, done.created, done.skipped], [4, 2, 2])
  })

  it('of a period is done by one worker at a time, entry by entry, and can be paused, resumed and stopped', async () => {
    const webhook = await strict({ deduplication: { action: 'Create Anyway' } })
    for (let n = 0; n < 12; n++) await on.send(webhook, { mail: `bulk${n}@x.test` })
    await on.send(webhook, { mail: 'bulk0@x.test' })
    const { body } = await replay(webhook, { since: since(), field_mapping: BY_MAIL })
    assert.deepEqual([body.status, body.total], ['running', 13])
    await replay(webhook, { since: since() }, 409)
    const path = `/webhooks/incoming/${webhook.id}/replays/${body.id}`
    assert.equal((await on.app('POST', `${path}/pause`)).body.status, 'paused')
    await advance(body.id)
    assert.equal((await on.app('GET', path)).body.created, 0)
    await on.app('POST', `${path}/resume`)
    // An expired lease lets two workers advance the same replay.
    await Promise.all([advance(body.id), advance(body.id), advance(body.id)])
    await advance(body.id)
    const done = (await on.app('GET', path)).body
    assert.deepEqual([done.status, done.created, done.skipped, done.failed], ['completed', 12, 1, 0])
    for (let n = 0; n < 12; n++)
      assert.equal(await count('contacts', { email_lower: `bulk${n}@x.test` }), 1, `${n}`)
    const entries = await on.app('GET', `/webhooks/incoming/${webhook.id}/logs?replay_id=${body.id}&limit=50`)
    assert.equal(entries.body.data.length, 13)
    const second = (await replay(webhook, { since: since(), field_mapping: BY_MAIL })).body
    assert.equal(second.total, 13)
    const other = `/webhooks/incoming/${webhook.id}/replays/${second.id}`
    assert.equal((await on.app('POST', `${other}/stop`)).body.status, 'stopped')
    await advance(second.id)
    assert.equal((await on.app('GET', other)).body.skipped, 0)
    await on.app('POST', `${other}/resume`, undefined, 409)
  })

  it('counts requests over the rate limit in the quota, and pauses where it is used up', async () => {
    const webhook = await on.createWebhook({ rate_limit: 1 })
    for (let n = 0; n < 4; n++) await on.send(webhook, { email: `rate${n}@x.test` })
    const { limits } = await on.db
      .system('organizations')
      .where({ id: on.api.organizationId })
      .first<{ limits: object }>('limits')
    const used = await on.db
      .system('limit_months')
      .where({ organization_id: on.api.organizationId, subject: 'incoming' })
      .first('used')
    const limit = (more: number) =>
      on.db
        .system('organizations')
        .where({ id: on.api.organizationId })
        .update({ limits: JSON.stringify({ ...limits, incoming_per_month: used.used + more }) })
    await limit(100)
    const { body } = await replay(webhook, { since: since() })
    // If a minute has ended between the requests, one more was accepted.
    assert.ok(body.total >= 2, `${body.total}`)
    await limit(body.total - 1)
    await advance(body.id)
    const path = `/webhooks/incoming/${webhook.id}/replays/${body.id}`
    const paused = (await on.app('GET', path)).body
    assert.deepEqual([paused.status, paused.created], ['paused', body.total - 1])
    assert.match(paused.problem, /quota/)
    await limit(100)
    await on.app('POST', `${path}/resume`)
    await advance(body.id)
    const done = (await on.app('GET', path)).body
    assert.deepEqual([done.status, done.created, done.problem], ['completed', body.total, null])
  })

  it('is done by a worker, and needs the role of an admin, or a key that may write the records', async () => {
    worker = await startWorker(on.db)
    const webhook = await strict()
    await on.send(webhook, { mail: 'worker@x.test' })
    const path = `/webhooks/incoming/${webhook.id}/replays`
    const body = { since: since(), field_mapping: BY_MAIL }
    const member = await on.signIn('member')
    assert.equal(
      (await on.api.request('POST', `/app${path}`, { key: null, headers: member, body })).status,
      403,
    )
    const { key: narrow } = await createKey(on.db, on.api.organizationId, { scopes: ['webhooks:write'] })
    const refused = await on.api.request('POST', `/v1${path}`, { key: narrow, body })
    assert.deepEqual([refused.status, refused.body.error.type], [403, 'insufficient_scope'])
    const { key } = await createKey(on.db, on.api.organizationId, {
      scopes: ['webhooks:write', 'contacts:write'],
    })
    const created = await on.api.request('POST', `/v1${path}`, { key, body })
    assert.equal(created.status, 201)
    await until(
      async () => (await count('incoming_replays', { id: created.body.id, status: 'completed' })) === 1,
    )
    assert.equal(await count('contacts', { email_lower: 'worker@x.test' }), 1)
  })

  it('the log is downloaded as CSV, with the filters of the list', async () => {
    const webhook = await on.createWebhook()
    await on.send(webhook, { email: 'csv@x.test' })
    await on.send(webhook, { email: '=cmd' }, { 'Content-Type': 'text/plain' })
    const path = `/webhooks/incoming/${webhook.id}/logs/export`
    const whole = String((await on.app('GET', path)).body)
    const lines = whole.trim().split('\r\n')
    assert.equal(lines.length, 3)
    assert.match(lines[0]!, /^id,webhook_id,created_at,source_ip,status,action,/)
    assert.match(lines[1]!, /,Failed,,415,/)
    assert.match(lines[2]!, /,Success,Created,200,/)
    const filtered = String((await on.app('GET', `${path}?status=Success`)).body)
    assert.equal(filtered.trim().split('\r\n').length, 2)
    await on.app('GET', `${path}?limit=5`, undefined, 422)
  })
})
