import { deepEqual, equal, ok } from 'node:assert/strict'
import { type Allowance, takeRecipients } from '../../../db/mails/allowance.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'

const MINUTE = 60_000
/** The middle of a minute. */
const NOW = Date.UTC(2026, 10, 23, 12, 0, 30)
const NEXT = NOW + MINUTE / 2

describe('the allowance of mails', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  const organization = async (limits: object) => {
    const id = await createOrganization(db)
    await db
      .system('organizations')
      .where({ id })
      .update({ limits: JSON.stringify(limits) })
    return (key: string, recipients = 1, now = NOW) =>
      takeRecipients(db.system, { organizationId: id, key, recipients }, { now })
  }
  const due = (allowance: Allowance) => (allowance.granted ? 0 : (allowance.until.getTime() - NEXT) / MINUTE)

  it('spreads the mails that wait over the next minutes, at the rate of the plan', async () => {
    const take = await organization({ mail_recipients_per_minute: 4 })
    for (let n = 0; n < 4; n++) ok((await take(`first ${n}`)).granted)
    const waits = []
    for (let n = 0; n < 9; n++) waits.push(due(await take(`mail ${n}`)))
    deepEqual(waits, [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2])
  })

  it('keeps the turn of a mail until it comes, and once only', async () => {
    const take = await organization({ mail_recipients_per_minute: 1 })
    await take('first')
    equal(due(await take('second')), 0)
    equal(due(await take('third')), 1)
    equal(due(await take('second')), 0)
    equal(due(await take('third', 1, NEXT + 1)), 1)
    ok((await take('second', 1, NEXT + 1)).granted)
    // Its next attempt is another mail.
    equal(due(await take('second', 1, NEXT + 2)), 2)
    ok((await take('third', 1, NEXT + MINUTE)).granted)
  })

  it('gives a mail to many a minute, which small mails do not take from it', async () => {
    const take = await organization({ mail_recipients_per_minute: 4 })
    await take('first')
    equal(due(await take('to many', 10)), 0)
    for (let n = 0; n < 3; n++) ok((await take(`small ${n}`)).granted)
    equal(due(await take('late')), 1)
    equal(due(await take('small', 1, NEXT)), 1.25)
    ok((await take('to many', 10, NEXT)).granted)
  })

  it('lets concurrent mails take turns apart', async () => {
    const take = await organization({ mail_recipients_per_minute: 2 })
    const all = await Promise.all(Array.from({ length: 12 }, (_, n) => take(`mail ${n}`)))
    const waits = all.filter(({ granted }) => !granted).map(due)
    deepEqual(
      waits.sort((one, other) => one - other),
      [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5],
    )
  })

  it('refuses what the day has no room for before it waits', async () => {
    const take = await organization({ mail_recipients_per_minute: 1, mail_recipients_per_day: 2 })
    ok((await take('first')).granted)
    const allowance = await take('many', 2)
    ok(!allowance.granted)
    equal(allowance.per, 'day')
  })
})
