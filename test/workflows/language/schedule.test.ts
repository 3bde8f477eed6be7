import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { cronProblems, longSteps, neverFires } from '../../../workflows/language/schedule.ts'

describe('cron expressions', () => {
  let client: Client
  before(async () => {
    client = new Client({
      connection: await Connection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! }),
    })
  })
  after(() => client.connection.close())

  /** Whether Temporal, which fires the schedules, accepts the expression. */
  async function isTakenByTemporal(cron: string): Promise<boolean> {
    try {
      const handle = await client.schedule.create({
        scheduleId: `cron-${randomUUID()}`,
        spec: { cronExpressions: [cron] },
        action: { type: 'startWorkflow', workflowType: 'unused', taskQueue: 'unused', args: [] },
        state: { paused: true },
      })
      await handle.delete()
      return true
    } catch (error) {
      // The SDK converts INVALID_ARGUMENT to a TypeError.
      if (!(error instanceof TypeError)) throw error
      return false
    }
  }

  const valid = [
    '0 8 * * *',
    '*/15 9-17 1,15 jan-MAR mon-Fri',
    ' 0  0 1 */2 7 ',
    '5/10 * 1-31/2 12 SUN',
    '* * * * 0-7',
    '* * * * 5-7',
    '* * 30 feb *',
    '*/70 * * * *',
  ]
  const invalid = [
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * 32 * *',
    '* * * 0 *',
    '* * * 13 *',
    '* * * * 8',
    '* 5-1 * * *',
    '* * * * fri-sun',
    '*/0 * * * *',
    '*/15/2 * * * *',
    '/10 * * * *',
    '1/ * * * *',
    '1-2-3 * * * *',
    '* * * * FOO',
    '* * * 1jan *',
    '*-5 * * * *',
    '0x5 * * * *',
    '1, * * * *',
    '-1 * * * *',
    '1.5 * * * *',
    '* * * *',
    '* * L * *',
    '* * 15W * *',
    '* * ? * *',
  ]
  for (const cron of valid)
    it(`such as "${cron}" are valid, here and in Temporal`, async () => {
      assert.deepEqual([cronProblems(cron), await isTakenByTemporal(cron)], [[], true])
    })
  for (const cron of invalid)
    it(`such as "${cron}" are invalid, here and in Temporal`, async () => {
      assert.deepEqual([cronProblems(cron).length, await isTakenByTemporal(cron)], [1, false])
    })

  it('have exactly five fields, though Temporal takes seconds, years, names and intervals too', () => {
    for (const cron of ['* * * * * *', '@daily', '@every 5m', '* * * * MON#1', 'TZ=UTC * * * * *'])
      assert.equal(cronProblems(cron).length, 1, cron)
  })
})

describe('cron expressions that name no day', () => {
  for (const cron of ['0 8 30 2 *', '0 8 31 4,6 *', '0 0 31 feb-feb *', '* * 30/1 2 *'])
    it(`such as "${cron}" never fire`, () => assert.ok(neverFires(cron)))
  for (const cron of ['0 8 29 2 *', '0 8 31 4,5 *', '* * 1,31 2 *', '* * */30 2 *', '0 0 31 */2 *'])
    it(`unlike "${cron}"`, () => assert.ok(!neverFires(cron)))
})

describe('cron expressions with a step that is longer than its range', () => {
  const cases: [cron: string, field: string, only: number, instead: string][] = [
    ['*/90 * * * *', 'minute', 0, '90m'],
    ['5 */36 * * *', 'hour', 0, '36h'],
    ['0 8 */45 * *', 'day of the month', 1, '45d'],
    ['0 8 1 */18 *', 'month', 1, '0 8 1 1 *'],
    ['0 8 * * */14', 'day of the week', 0, '0 8 * * 0'],
    ['*/90 8 * * *', 'minute', 0, '0 8 * * *'],
    ['10-20/30,40 * * * *', 'minute', 10, '10,40 * * * *'],
    ['50/15 * * * *', 'minute', 50, '50 * * * *'],
  ]
  for (const [cron, field, only, instead] of cases)
    it(`such as "${cron}" name one value of it`, () => {
      assert.deepEqual(cronProblems(cron), [])
      const [found, ...others] = longSteps(cron)
      assert.deepEqual(others, [])
      assert.deepEqual([found!.field, found!.only, found!.every ?? found!.cron], [field, only, instead])
    })
  for (const cron of [
    '*/59 * * * *',
    '*/60 */24 * * *',
    '0 8 */31 */12 */7',
    '10-20/10 * * * *',
    '0-30/7 * * * *',
  ])
    it(`unlike "${cron}"`, () => assert.deepEqual(longSteps(cron), []))
})
