import assert from 'node:assert/strict'
import { insertEvents } from '../../../db/events/outbox.ts'
import type { Actor } from '../../../db/model/actor.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { createLogger } from '../../../db/process/log.ts'
import { advanceBatch, runBatches } from '../../../db/runs/batches.ts'
import { startChild } from '../../../db/runs/children.ts'
import { CHAIN_START, createRun } from '../../../db/runs/runs.ts'
import { activate, getWorkflow } from '../../../db/workflows/workflows.ts'
import { eventsQueue } from '../../../worker/queues/events.ts'
import { CHAIN_DEPTH } from '../../../workflows/shared/limits.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization, testActor } from '../../support/database.ts'
import { signIn } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'
import { createEmptyWorkflow } from '../../support/workflows.ts'

describe('storms of runs', () => {
  const suite = withApi()
  let organizationId: string
  before(() => signIn(suite.db, suite.api))
  beforeEach(() => {
    organizationId = suite.api.organizationId
  })

  const tenant = <T>(work: (tx: Tenant) => Promise<T>, actor: Actor = testActor): Promise<T> =>
    suite.db.tenant(organizationId, actor, work)
  const limit = (limits: object) =>
    suite.db
      .system('organizations')
      .where({ id: organizationId })
      .update({ limits: JSON.stringify(limits) })
  const listening = (event: string): Promise<string> =>
    tenant(async (tx) => {
      const { id } = await createEmptyWorkflow(tx, { type: 'event', events: [event] })
      await activate(tx, id)
      return id
    })
  const start = (): Promise<string> =>
    tenant(async (tx) => {
      const { id, name } = await createEmptyWorkflow(tx)
      const run = { workflow: { id, name, version: 1 }, trigger: { type: 'api' as const }, inputs: {} }
      return createRun(tx, { ...run, chain: CHAIN_START })
    })
  const raise = (name: string, count: number, runId?: string) =>
    tenant(
      (tx) =>
        insertEvents(
          tx,
          Array.from({ length: count }, (_, n) => ({ name, data: { n } })),
        ),
      runId === undefined ? testActor : { type: 'workflow_run', id: runId },
    )
  const match = async () => {
    const skipped: string[] = []
    const queue = eventsQueue({
      db: suite.db,
      log: createLogger('worker', 'silent'),
      onSkipped: (code) => void skipped.push(code),
    })
    await queue.claim(suite.db.system, 1)
    return skipped
  }
  /** The statuses of the runs that end from now on, as the metrics count them. */
  const ends = () => {
    const counted: string[] = []
    suite.db.onEnd(({ status, organization_id, of }) => {
      if (organization_id === organizationId) counted.push(`${of.trigger} ${status}`)
    })
    return counted
  }
  const countOf = async (workflowId: string) => {
    const rows = await suite.db.system('runs').where({ workflow_id: workflowId }).orderBy('id')
    return {
      queued: rows.filter(({ status }) => status === 'queued'),
      skipped: rows.filter(({ status }) => status === 'skipped'),
    }
  }
  const problemOf = async (id: string) =>
    (await suite.db.system('workflow_triggers').where({ workflow_id: id }))[0]
  const mails = () =>
    suite.db.system('account_mails').where({ organization_id: organizationId, kind: 'runs_skipped' })

  it('are bounded by what descends from one run: the rest is skipped, visibly, and the owner is told once', async () => {
    await limit({ max_descendants: 10 })
    const ended = ends()
    const workflow = await listening('storm.began')
    const root = await start()
    await raise('storm.began', 3, root)
    assert.deepEqual(await match(), [])
    const [child] = (await countOf(workflow)).queued
    assert.deepEqual([child.root, child.depth], [root, 1])
    // Three events and three runs so far: one of the next three fits, with the events.
    await raise('storm.began', 3, child.id)
    assert.deepEqual(await match(), Array(2).fill('chain_too_wide'))
    await raise('storm.began', 30, child.id)
    assert.equal((await match()).length, 30)
    const { queued, skipped } = await countOf(workflow)
    assert.deepEqual([queued.length, skipped.length <= 20], [4, true])
    assert.deepEqual(ended, Array(skipped.length).fill('event skipped'))
    assert.match(skipped[0].error.message, new RegExp(`${root} led to more than 10 runs and events`))
    const { problem, problems } = await problemOf(workflow)
    assert.deepEqual([problem.message, problems], [skipped[0].error.message, 32])
    assert.equal((await mails()).length, 1)
    const shown = await tenant((tx) => getWorkflow(tx, workflow))
    assert.equal(shown.trigger_problem?.count, 32)
  })

  it('are bounded by the length of their chain: the run is recorded as failed, and counted', async () => {
    await limit({})
    const ended = ends()
    const workflow = await listening('chain.went_on')
    const last = await start()
    await suite.db.system('runs').where({ id: last }).update({ depth: CHAIN_DEPTH })
    await raise('chain.went_on', 2, last)
    assert.deepEqual(await match(), ['chain_too_long', 'chain_too_long'])
    const rows = await suite.db.system('runs').where({ workflow_id: workflow })
    assert.deepEqual(
      rows.map(({ status, error }) => [status, error.code]),
      Array(2).fill(['failed', 'chain_too_long']),
    )
    assert.deepEqual(ended, Array(2).fill('event failed'))
  })

  it('do not count what clients and senders cause: each of their events has a budget of its own', async () => {
    await limit({ max_descendants: 2 })
    const workflow = await listening('order.placed')
    await raise('order.placed', 5)
    assert.deepEqual(await match(), [])
    assert.equal((await countOf(workflow)).queued.length, 5)
  })

  it('are bounded by what descends from one run, also through nodes that start workflows', async () => {
    await limit({ max_descendants: 2 })
    const parent = await start()
    const { id } = await tenant((tx) => createEmptyWorkflow(tx))
    const child = () => tenant((tx) => startChild(tx, id, {}), { type: 'workflow_run', id: parent })
    await child()
    await child()
    await assert.rejects(child(), { code: 'chain_too_wide' })
    assert.equal((await countOf(id)).queued.length, 2)
  })

  it('are bounded by the queued runs of the organization, not by those of others', async () => {
    const other = await createOrganization(suite.db)
    await limit({ max_queued: 0 })
    await raise('storm.queued', 2)
    const workflow = await listening('storm.queued')
    await raise('storm.queued', 2)
    assert.deepEqual(await match(), Array(2).fill('too_many_queued'))
    const { queued, skipped } = await countOf(workflow)
    assert.deepEqual([queued.length, skipped[0].error.code], [0, 'too_many_queued'])
    organizationId = other
    const theirs = await listening('storm.queued')
    await raise('storm.queued', 2)
    assert.deepEqual(await match(), [])
    assert.equal((await countOf(theirs)).queued.length, 2)
  })

  it('are bounded by the queued runs of the organization: requests get 429, previews do not', async () => {
    await suite.db.system('runs').where({ organization_id: organizationId, status: 'queued' }).delete()
    await limit({ max_queued: 1 })
    const { id } = await tenant((tx) => createEmptyWorkflow(tx))
    const run = (confirm: boolean) =>
      suite.api.request('POST', `/v1/workflows/${id}/run`, { body: { confirm } })
    assert.equal((await run(true)).status, 200)
    const { status, body, headers } = await run(true)
    assert.deepEqual([status, body.error.type, headers.get('retry-after')], [429, 'quota_exceeded', '5'])
    assert.match(body.error.message, /has 1 queued runs, as many as its plan allows/)
    assert.equal((await run(false)).status, 200)
    assert.equal((await countOf(id)).queued.length, 1)
  })

  it('end with the workflow, if its deactivation cancels the queued runs', async () => {
    await limit({})
    const workflow = await listening('storm.ended')
    await raise('storm.ended', 3)
    await match()
    const path = `/v1/workflows/${workflow}/deactivate`
    const plain = await suite.api.request('POST', path)
    assert.deepEqual([plain.status, 'run_batch_id' in plain.body], [200, false])
    assert.equal((await countOf(workflow)).queued.length, 3)
    const { key } = await createKey(suite.db, organizationId, { scopes: ['workflows:author'] })
    const body = { cancel_queued: true }
    assert.equal((await suite.api.request('POST', path, { key, body })).status, 403)
    const { run_batch_id } = (await suite.api.request('POST', path, { body })).body
    const [batch] = await runBatches.claim(suite.db.system, 1)
    assert.equal(batch!.id, run_batch_id)
    await tenant((tx) => advanceBatch(tx, batch!, 50))
    assert.equal((await countOf(workflow)).queued.length, 0)
    const answer = await suite.api.request('GET', `/v1/run-batches/${run_batch_id}`)
    assert.deepEqual([answer.body.total, answer.body.done, answer.body.status], [3, 3, 'completed'])
  })
})
