import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { replayFailed } from '../../../db/outgoing/after-outage.ts'
import { FAILED_FOR_DAYS } from '../../../db/outgoing/attempts.ts'
import { VERSION } from '../../../db/process/build.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { set } from '../../support/nodes.ts'
import { OUTGOING_ROW } from '../../support/webhook-rows.ts'
import { queueRun } from '../../support/worker.ts'

const runOps = ({ url }: TestDatabase, given: string[]) =>
  promisify(execFile)(process.execPath, ['worker/run.mjs', 'worker/commands/ops.ts', ...given], {
    cwd: fileURLToPath(new URL('../../../', import.meta.url)),
    env: { ...process.env, NODE_V8_COVERAGE: '', DATABASE_URL: url },
  })

describe('npm run ops', () => {
  let db: TestDatabase
  let organizationId: string
  let stuck: string
  let held: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    const queued = () => queueRun(db, organizationId, { nodes: [set('a')] })
    ;[stuck, held] = [await queued(), await queued()]
    await db
      .system('runs')
      .where({ id: stuck })
      .update({ stuck_reason: 'The task is at\u001b[31m attempt 9.' })
    await db.system('runs').where({ id: held }).update({ hold: 'rate', hold_until: new Date() })
  })
  after(() => db?.drop())

  const ops = (...given: string[]) => runOps(db, given)
  const json = async (...given: string[]) => JSON.parse((await ops(...given, '--json')).stdout)

  it('shows queues and counts', async () => {
    const { version, status } = await json('status')
    assert.equal(version, VERSION)
    const countOf = (name: string) => status.find((one: { name: string }) => one.name === name).count
    assert.deepEqual(
      ['organizations', 'stuck_runs', 'runs queued', 'runs held', 'bulk_jobs open'].map(countOf),
      [1, 1, 1, 1, 0],
    )
  })

  it('lists the stuck runs of all organizations, without control characters in the terminal', async () => {
    const [row] = (await json('stuck')).stuck
    assert.deepEqual([row.organization_id, row.run_id], [organizationId, stuck])
    const { stdout } = await ops('stuck')
    assert.match(
      stdout,
      new RegExp(
        `^organization_id +run_id .+\\n${organizationId}  ${stuck} .*The task is at \\[31m attempt 9`,
      ),
    )
  })

  it('lists what is held, and by what', async () => {
    const [row, ...others] = (await json('held')).held
    assert.deepEqual([row.held, row.hold, row.count, others.length], ['run', 'rate', 1, 0])
  })

  it('shows what one organization uses of its plan, and its open work', async () => {
    const { organization } = await json('organization', organizationId)
    const figureOf = (name: string) => organization.find((one: { name: string }) => one.name === name)?.value
    assert.deepEqual(
      ['id', 'plan', 'outgoing_webhooks', 'runs_queued', 'runs_held', 'runs_stuck', 'runs_late'].map(
        figureOf,
      ),
      [organizationId, 'enterprise', 0, 1, 1, 1, 0],
    )
    assert.match((await ops('organization', organizationId)).stdout, /^runs_held +1$/m)
    await assert.rejects(ops('organization', 'nobody@example.com'), {
      code: 1,
      stderr: 'organization not found\n',
    })
  })

  it('says that nothing fails, and how it is used', async () => {
    assert.equal((await ops('failing')).stdout, 'nothing is failing\n')
    for (const given of [
      [],
      ['all'],
      ['stuck', 'more'],
      ['stuck', '--dry-run'],
      ['organization'],
      ['organization', 'a', 'b'],
      ['resume'],
      ['retry', 'all'],
    ])
      await assert.rejects(ops(...given), {
        code: 1,
        stderr: /^usage: npm run ops -- <status\|stuck\|held\|failing>/,
      })
  })
})

describe('npm run ops after an outage of the service itself', () => {
  let db: TestDatabase
  let mine: string
  let other: string
  beforeEach(async () => {
    db = await createTestDatabase()
    ;[mine, other] = [await createOrganization(db), await createOrganization(db)]
  })
  afterEach(() => db?.drop())

  const json = async (name: string, ...given: string[]): Promise<Record<string, string>[]> =>
    JSON.parse((await runOps(db, [name, ...given, '--json'])).stdout)[name]
  const webhook = async (organization_id: string, values: object = {}): Promise<string> => {
    const id = uuidv7()
    await db
      .system('outgoing_webhooks')
      .insert({ organization_id, id, name: 'Receiver', ...OUTGOING_ROW, ...values })
    return id
  }
  const raise = async (organizationId: string, count: number) => {
    const events = Array.from({ length: count }, () => ({ name: 'use.made', data: {} }))
    await db.tenant(organizationId, testActor, (tx) => insertEvents(tx, events))
    await matchEvents(db.system)
  }
  const deliveries = (webhook_id: string) => db.system('deliveries').where({ webhook_id })
  const turnedOff = { status: 'Inactive', status_reason: FAILED_FOR_DAYS }

  it('activates what the service turned off, of one organization or of all', async () => {
    const [off, elsewhere] = [await webhook(mine, turnedOff), await webhook(other, turnedOff)]
    await webhook(mine, { status: 'Inactive', status_reason: 'the receiver answered 410 Gone' })
    await webhook(mine, { status: 'Inactive' })
    await raise(mine, 2)
    const active = () => db.system('outgoing_webhooks').where({ status: 'Active' }).orderBy('id').pluck('id')
    const named = (rows: Record<string, string>[]) => rows.map(({ webhook_id }) => webhook_id).sort()
    assert.deepEqual(named(await json('resume', 'all', '--dry-run')), [off, elsewhere].sort())
    assert.deepEqual(await active(), [])

    assert.deepEqual(await json('resume', mine), [
      { organization_id: mine, webhook_id: off, outcome: 'activated' },
    ])
    assert.deepEqual(await active(), [off])
    assert.deepEqual(await deliveries(off).pluck('status'), ['queued', 'queued'])
    const entries = await db.system('audit_log').where({ organization_id: mine })
    assert.deepEqual(
      entries.map(({ action, actor_type, target_id }) => [action, actor_type, target_id]),
      [['outgoing_webhook.activated', 'system', off]],
    )

    assert.deepEqual(named(await json('resume', 'all')), [elsewhere])
    assert.deepEqual(await active(), [off, elsewhere].sort())
    assert.equal((await runOps(db, ['resume', 'all'])).stdout, 'nothing to do\n')
  })

  it('sends again what has failed since a moment, and says which webhook has a replay already', async () => {
    const [failing, busy] = [await webhook(mine), await webhook(other)]
    await webhook(other)
    await raise(mine, 3)
    await raise(other, 1)
    await deliveries(failing).update({ status: 'failed', ended_at: new Date() })
    await deliveries(busy).update({ status: 'failed', ended_at: new Date() })
    const hourAgo = new Date(Date.now() - 3_600_000)
    await db.tenant(other, testActor, (tx) => replayFailed(tx, busy, hourAgo))
    const outcomes = async (...given: string[]) =>
      Object.fromEntries(
        (await json('retry', 'all', ...given)).map(({ webhook_id, outcome }) => [webhook_id!, outcome!]),
      )
    assert.deepEqual(await outcomes(hourAgo.toISOString(), '--dry-run'), {
      [failing]: '3 would be sent again',
      [busy]: '1 would be sent again',
    })
    const made = await outcomes(hourAgo.toISOString())
    assert.deepEqual(Object.keys(made).sort(), [failing, busy].sort())
    assert.match(made[busy]!, /^refused: the webhook has an open replay/)
    const replay = await db.system('outgoing_replays').where({ webhook_id: failing }).first()
    assert.equal(made[failing], `3 are sent again by the replay ${replay.id}`)
    assert.deepEqual([replay.total, replay.include, replay.status], [3, ['failed'], 'running'])
    for (const since of ['yesterday', '2999-01-01'])
      await assert.rejects(runOps(db, ['retry', 'all', since]), { code: 1, stderr: /is no time of the past/ })
  })
})
