import assert from 'node:assert/strict'
import { connect } from '../../db/postgres/connect.ts'
import type { TestApi } from '../support/api.ts'
import { importsOf } from '../support/imports.ts'
import { startStack, type TestStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

const ROWS = 1_500

describe('a bulk job and an undo whose worker is killed', () => {
  let stack: TestStack
  before(async () => {
    stack = await startStack({ onSuite: true })
  })
  after(() => stack?.stop())

  const request: TestApi['request'] = async (method, path, { body, headers } = {}) => {
    const answer = await fetch(stack.apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${stack.key}`, 'Content-Type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: answer.status, headers: answer.headers, body: await answer.json() }
  }

  /** Starts a job, kills the worker once it has changed some records, and waits for its end. */
  async function killed(path: string, body: object) {
    const { body: job } = await request('POST', path, { body: { ...body, confirm: true } })
    assert.equal(job.object, 'bulk_job', JSON.stringify(job))
    const progress = async () => (await request('GET', `/v1/bulk-jobs/${job.id}`)).body
    const { done } = await until(async () => {
      const now = await progress()
      return now.done > 0 ? now : undefined
    }, 'some records')
    assert.ok(done < ROWS, 'in the middle')
    stack.kill('worker')
    const ended = async () => {
      const now = await progress()
      return now.ended_at ? now : undefined
    }
    return until(ended, 'the end of the job')
  }

  it('change every record once', async () => {
    const imports = importsOf({ request })
    const rows = Array.from({ length: ROWS }, (_, i) => `k${i}\n`)
    const done = await imports.run({ entity: 'contacts' }, `first_name\n${rows.join('')}`)
    assert.equal(done.progress.created, ROWS)

    const change = { action: 'update', query: {}, data: { tags: ['old'] } }
    const job = await killed('/v1/objects/contacts/bulk', change)
    assert.deepEqual([job.total, job.done, job.refused], [ROWS, ROWS, 0])
    const undone = await killed(`/v1/bulk-jobs/${job.id}/undo`, {})
    assert.deepEqual([undone.total, undone.done, undone.refused], [ROWS, ROWS, 0])

    const db = connect({ url: stack.databaseUrl })
    const { rows: counted } = await db.system.raw(
      `select (select count(*) from contacts where version = 3 and tags = '{}') as contacts,
         (select count(*) from record_history where object = 'contact') as histories,
         (select count(*) from events where name = 'contact.updated') as events`,
    )
    await db.close()
    assert.deepEqual(counted[0], { contacts: ROWS, histories: 3 * ROWS, events: 2 * ROWS })
  })

  it('erase a person whose name is in many rows', async () => {
    const mail = 'erika@mail.example'
    for (let n = 0; n < 40; n++)
      await request('POST', '/v1/objects/companies', { body: { name: `${n}`, email: mail } })
    const { body: contact } = await request('POST', '/v1/objects/contacts', { body: { email: mail } })
    const { body: job } = await request('POST', `/v1/objects/contacts/${contact.id}/erase`, {
      body: { confirm: true },
    })
    const progress = async () => (await request('GET', `/v1/erasures/${job.id}`)).body
    await until(async () => (await progress()).erased.event > 2, 'something erased by the worker')
    stack.kill('worker')
    const receipt = await until(async () => {
      const now = await progress()
      return now.status === 'completed' ? now : undefined
    }, 'the end of the erasure')
    assert.equal(receipt.review_count, 40)
    const db = connect({ url: stack.databaseUrl })
    const { rows } = await db.system.raw(
      'select (select count(*) from events where data::text like ?) as events, (select count(*) from companies where email = ?) as companies',
      [`%${mail}%`, mail],
    )
    await db.close()
    assert.deepEqual(rows[0], { events: 0, companies: 40 })
  })
})
