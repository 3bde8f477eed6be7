import assert from 'node:assert/strict'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { startStack, type TestStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

const RECORDS = 600

describe('records that enter a list while the worker is killed', () => {
  let stack: TestStack
  let db: Database
  before(async () => {
    stack = await startStack({ onSuite: true })
    db = connect({ url: stack.databaseUrl })
  })
  after(async () => {
    await db?.close()
    await stack?.stop()
  })

  async function send(path: string, body?: object) {
    const answer = await fetch(`${stack.apiUrl}/v1${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${stack.key}`, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const json = (await answer.json()) as { id: string; status: string; member_count: number }
    assert.ok(answer.status < 300, JSON.stringify(json))
    return json
  }
  const countOf = async (name: string) => {
    const { rows } = await db.system.raw<{ rows: { all: number; distinct: number }[] }>(
      'select count(*)::integer as all, count(distinct subject_id)::integer as distinct from events where name = ?',
      [name],
    )
    return rows[0]!
  }

  it('raise one event each, after the next worker has started', async () => {
    const { id } = await send('/lists', {
      entity: 'deals',
      name: 'Won',
      type: 'filter',
      query: { stage: 'won' },
    })
    const list = () => send(`/lists/${id}`)
    await until(async () => (await list()).status === 'ready', 'the list')
    for (let n = 0; n < RECORDS; n += 200) {
      const operations = Array.from({ length: 200 }, (_, i) => ({
        op: 'create',
        data: { name: `Deal ${n + i}`, stage: 'won' },
      }))
      await send('/objects/deals/batch', { operations })
      if (n === 0) {
        await until(async () => (await countOf('list.entered')).all > 0, 'the first entry')
        stack.kill('worker')
      }
    }
    // The next one, which may not run yet.
    await until(() => stack.kill('worker'), 'the next worker')
    await until(async () => (await list()).member_count === RECORDS, 'all members')
    assert.deepEqual(await countOf('list.entered'), { all: RECORDS, distinct: RECORDS })
    assert.deepEqual(await countOf('list.left'), { all: 0, distinct: 0 })
    await until(async () => !(await db.system('list_changes').first('id')), 'the rest of the queue')
    assert.deepEqual(await countOf('list.entered'), { all: RECORDS, distinct: RECORDS })
  })
})
