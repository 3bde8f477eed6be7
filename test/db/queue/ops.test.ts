import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { VERSION } from '../../../db/process/build.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { set } from '../../support/nodes.ts'
import { queueRun } from '../../support/worker.ts'

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

  const ops = (...given: string[]) =>
    promisify(execFile)(process.execPath, ['worker/run.mjs', 'worker/commands/ops.ts', ...given], {
      cwd: fileURLToPath(new URL('../../../', import.meta.url)),
      env: { ...process.env, NODE_V8_COVERAGE: '', DATABASE_URL: db.url },
    })
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
    const valueOf = (name: string) => organization.find((one: { name: string }) => one.name === name)?.value
    assert.deepEqual(
      ['id', 'plan', 'outgoing_webhooks', 'runs_queued', 'runs_held', 'runs_stuck', 'runs_late'].map(valueOf),
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
    for (const given of [[], ['all'], ['stuck', 'more'], ['organization'], ['organization', 'a', 'b']])
      await assert.rejects(ops(...given), {
        code: 1,
        stderr: /^usage: npm run ops -- <status\|stuck\|held\|failing>/,
      })
  })
})
