import assert from 'node:assert/strict'
import { until } from '../support/until.ts'
import { withStack } from '../support/with-stack.ts'

const RECORDS = 600

describe('records that enter a list while the worker is killed', () => {
  const on = withStack()

  const countOf = async (name: string) => {
    const { rows } = await on.db.system.raw<{ rows: { all: number; distinct: number }[] }>(
      'select count(*)::integer as all, count(distinct subject_id)::integer as distinct from events where name = ?',
      [name],
    )
    return rows[0]!
  }

  it('raise one event each, after the next worker has started', async () => {
    const { id } = await on.v1<{ id: string }>('POST', '/lists', {
      entity: 'deals',
      name: 'Won',
      type: 'filter',
      query: { stage: 'won' },
    })
    const list = () => on.v1<{ status: string; member_count: number }>('GET', `/lists/${id}`)
    await until(async () => (await list()).status === 'ready', 'the list')
    for (let n = 0; n < RECORDS; n += 200) {
      const operations = Array.from({ length: 200 }, (_, i) => ({
        op: 'create',
        data: { name: `Deal ${n + i}`, stage: 'won' },
      }))
      await on.v1('POST', '/objects/deals/batch', { operations })
      if (n === 0) {
        await until(async () => (await countOf('list.entered')).all > 0, 'the first entry')
        on.stack.kill('worker')
      }
    }
    // The next one, which may not run yet.
    await until(() => on.stack.kill('worker'), 'the next worker')
    await until(async () => (await list()).member_count === RECORDS, 'all members')
    assert.deepEqual(await countOf('list.entered'), { all: RECORDS, distinct: RECORDS })
    assert.deepEqual(await countOf('list.left'), { all: 0, distinct: 0 })
    await until(async () => !(await on.db.system('list_changes').first('id')), 'the rest of the queue')
    assert.deepEqual(await countOf('list.entered'), { all: RECORDS, distinct: RECORDS })
  })
})
