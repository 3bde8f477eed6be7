import assert from 'node:assert/strict'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { getRun } from '../../db/runs/views.ts'
import { createOrganization, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const sleep = (duration: string) => ({ nodes: [{ id: 'sleep', type: 'delay', config: { for: duration } }] })
const light = { nodes: [{ id: 'set', type: 'set_fields', config: { fields: { a: 1 } } }] }
const call = {
  nodes: [{ id: 'call', type: 'api_request', config: { method: 'GET', url: 'https://api.example.com' } }],
}

/** Interval at which the relay looks for runs that may start. */
const POLL_MS = 50
/** Waits for several polls. */
const polls = () => new Promise((resolve) => setTimeout(resolve, 6 * POLL_MS))

/** The order and number of queued runs that start. */
describe('admission of runs', () => {
  const calls: (() => void)[] = []
  const suite = withWorker({
    pollMs: POLL_MS,
    http: () =>
      new Promise((resolve) => {
        calls.push(() => resolve(httpResponse({ status: 200 })))
      }),
  })

  /** Responds to the oldest call, once it has arrived. */
  async function answer(): Promise<void> {
    const call = await until(() => calls.shift())
    call()
  }

  const waitingFor = async (organizationId: string, id: string) =>
    (await suite.db.tenant(organizationId, testActor, (tx) => getRun(tx, id))).waiting_for

  const rowOf = (id: string) => suite.db.system('runs').where({ id }).first()

  const untilAsleep = (id: string) => until(async () => (await rowOf(id)).sleeps_until !== null)
  const untilWaitsFor = (organizationId: string, id: string, wanted: string) =>
    until(
      async () => (await waitingFor(organizationId, id)) === wanted,
      () => waitingFor(organizationId, id),
    )

  it('does not count sleeping runs against the limit of the organization', async () => {
    const organizationId = await createOrganization(suite.db, { limits: { max_running: 1 } })
    const asleep = await queueRun(suite.db, organizationId, sleep('30d'))
    await untilAsleep(asleep)
    const row = await rowOf(asleep)
    const days = (row.sleeps_until.getTime() - row.started_at.getTime()) / 86_400_000
    assert.ok(days > 29.9 && days < 30.1, `${days} days`)
    const next = await queueRun(suite.db, organizationId, light)
    assert.equal((await untilRun(suite.db, next)).status, 'completed')
  })

  it('starts the next run of an organization as soon as one falls asleep', async () => {
    const organizationId = await createOrganization(suite.db, { limits: { max_running: 1 } })
    const ids = [
      await queueRun(suite.db, organizationId, sleep('1h')),
      await queueRun(suite.db, organizationId, sleep('1h')),
      await queueRun(suite.db, organizationId, light),
    ]
    assert.equal((await untilRun(suite.db, ids[2]!)).status, 'completed')
    for (const id of ids.slice(0, 2)) assert.equal((await rowOf(id)).status, 'running')
  })

  it('counts a run again when it wakes', async () => {
    const organizationId = await createOrganization(suite.db)
    const id = await queueRun(suite.db, organizationId, {
      nodes: [...sleep('1s').nodes, ...call.nodes],
      edges: [{ from: 'sleep', handle: 'success', to: 'call' }],
    })
    await untilAsleep(id)
    await until(async () => (await rowOf(id)).sleeps_until === null)
    await answer()
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
  })

  it('counts active runs, and says what a queued run waits for', async () => {
    const organizationId = await createOrganization(suite.db, { limits: { max_running: 1 } })
    const active = await queueRun(suite.db, organizationId, call)
    await untilRun(suite.db, active, ['running'])
    const queued = await queueRun(suite.db, organizationId, light)
    await untilWaitsFor(organizationId, queued, 'organization')
    await polls()
    assert.equal((await rowOf(queued)).status, 'queued')
    await answer()
    assert.equal((await untilRun(suite.db, queued)).status, 'completed')
    assert.equal(await waitingFor(organizationId, queued), null)
  })

  it('counts sleeping runs against the concurrency of their workflow', async () => {
    const organizationId = await createOrganization(suite.db)
    const asleep = await queueRun(suite.db, organizationId, { ...sleep('1h'), settings: { concurrency: 1 } })
    await untilAsleep(asleep)
    const { workflow_id, workflow_version, workflow_name } = await rowOf(asleep)
    const queued = await suite.db.tenant(organizationId, testActor, (tx) =>
      createRun(tx, {
        workflow: { id: workflow_id, version: workflow_version, name: workflow_name },
        trigger: { type: 'api' },
        inputs: {},
        chain: CHAIN_START,
      }),
    )
    await polls()
    assert.equal((await rowOf(queued)).status, 'queued')
    assert.equal(await waitingFor(organizationId, queued), 'workflow')
  })
})
