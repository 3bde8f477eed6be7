import assert from 'node:assert/strict'
import {
  LimitWindows,
  takeFromWindow,
  takeUpToLimit,
  usedOfWindow,
  windowAt,
} from '../../../db/access/limits.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'

describe('limits', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  after(() => db.drop())

  const rule = (subject: string, limit: number) => ({ organizationId, subject, limit, period: 3_600 })

  it('grant at most the remainder of a window', async () => {
    const take = (amount: number) => takeFromWindow(db.system, rule('part', 10), amount)
    assert.equal((await take(7)).granted, 7)
    assert.equal((await take(7)).granted, 3)
    assert.equal((await take(1)).granted, 0)
  })

  it('are exact in one process under concurrency', async () => {
    const windows = new LimitWindows(db.system)
    const answers = await Promise.all(Array.from({ length: 300 }, () => windows.take(rule('one', 200))))
    assert.equal(answers.filter(({ allowed }) => allowed).length, 200)
  })

  it('hold across processes', async () => {
    const processes = [1, 2, 3].map(() => new LimitWindows(db.system))
    const answers = await Promise.all(
      Array.from({ length: 900 }, (_, i) => processes[i % 3]!.take(rule('many', 500))),
    )
    const allowed = answers.filter((answer) => answer.allowed).length
    assert.ok(allowed <= 500 && allowed >= 480, String(allowed))
  })

  it('count what they grant only, in any amount, also where the commit does not wait for the disk', async () => {
    for (const isFlushedLater of [false, true]) {
      const month = { ...rule(`month ${isFlushedLater}`, 10), period: 'month' } as const
      const take = (amount: number) => takeUpToLimit(db.system, month, amount, { isFlushedLater })
      assert.deepEqual([await take(11), await take(1), await take(2), await take(1)], [10, 0, 0, 0])
      assert.equal(await usedOfWindow(db.system, month), 10)
      const none = { ...month, subject: `none ${isFlushedLater}` }
      assert.equal(await takeUpToLimit(db.system, { ...none, limit: 0 }), 0)
      assert.equal(await takeUpToLimit(db.system, { ...none, limit: Number.POSITIVE_INFINITY }, 3), 3)
      const many = { ...month, subject: `many ${isFlushedLater}`, limit: 100 }
      const granted = await Promise.all(
        Array.from({ length: 60 }, (_, n) => takeUpToLimit(db.system, many, 1 + (n % 4), { isFlushedLater })),
      )
      assert.equal(
        granted.reduce((sum, one) => sum + one, 0),
        100,
      )
    }
  })

  it('count months in UTC', () => {
    const { start, end } = windowAt('month', Date.UTC(2026, 11, 31, 23, 59))
    assert.deepEqual(
      [new Date(start).toISOString(), new Date(end).toISOString()],
      ['2026-12-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
    )
  })
})
