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
})
