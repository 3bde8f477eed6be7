import assert from 'node:assert/strict'
import { connect } from '../../db/postgres/connect.ts'
import type { TestApi } from '../support/api.ts'
import { importsOf } from '../support/imports.ts'
import { startStack, type TestStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

const ROWS = 3_000

describe('an import whose worker is killed', () => {
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
    const text = await answer.text()
    return {
      status: answer.status,
      headers: answer.headers,
      body: text.startsWith('{') ? JSON.parse(text) : text,
    }
  }

  it('writes every row once: its record, its history and its event', async () => {
    const imports = importsOf({ request })
    // Every tenth row is wrong.
    const rows = Array.from(
      { length: ROWS },
      (_, i) => `k${i},${i % 10 === 0 ? 'wrong' : `k${i}@x.example`}\n`,
    )
    const { body } = await imports.prepare({ entity: 'contacts' }, `external_id,email\n${rows.join('')}`)
    await imports.start(body.id)
    const { progress } = await until(async () => {
      const { body: now } = await request('GET', `/v1/imports/${body.id}`)
      return now.progress.rows > 0 ? now : undefined
    }, 'some rows')
    assert.ok(progress.rows < ROWS, 'in the middle')
    stack.kill('worker')
    const done = await imports.ended(body.id, 90)
    assert.equal(done.status, 'completed')
    assert.deepEqual(
      [done.progress.rows, done.progress.created, done.progress.failed],
      [ROWS, ROWS * 0.9, ROWS * 0.1],
    )

    const db = connect({ url: stack.databaseUrl })
    const { rows: counted } = await db.system.raw(
      `with imported as (select id from contacts where external_id like 'k%')
       select (select count(*) from imported) as records,
         (select count(*) from record_history where record_id in (select id from imported)) as histories,
         (select count(*) from events where name = 'contact.created' and subject_id in (select id from imported)) as events`,
    )
    assert.deepEqual(counted[0], { records: ROWS * 0.9, histories: ROWS * 0.9, events: ROWS * 0.9 })
    await db.close()
    const errors = (await imports.errors(body.id)).trim().split('\r\n').slice(1)
    assert.deepEqual(
      errors.map((line) => line.split(',')[0]),
      Array.from({ length: ROWS / 10 }, (_, i) => `k${i * 10}`),
    )
  })
})
