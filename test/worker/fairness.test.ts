import assert from 'node:assert/strict'
import { createLogger } from '../../db/process/log.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { segmentsAtOnce } from '../../worker/workers.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { createOrganization, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/** `npm run chaos -- --only=backlog` drains 2,000 of a whole stack; `BACKLOG=10000 npx mocha …` for a longer test. */
const BACKLOG = Number(process.env.BACKLOG ?? 400)
/** The connections that `startWorker` tells the worker of. */
const POOL = 10
const CALL_MS = 1_000
/** A quarter of the maximum number of runs in progress on one worker. */
const MOST_BEFORE = 64

const call = (id: string) => ({
  id,
  type: 'api_request',
  config: { method: 'GET', url: 'https://a.example' },
})
const light = { nodes: [{ id: 'set', type: 'set_fields', config: { fields: { a: 1 } } }] }
const calls: Pick<Definition, 'nodes' | 'edges'> = {
  nodes: [call('first'), call('second')],
  edges: [{ from: 'first', handle: 'success', to: 'second' }],
}

/** Queues `count` further runs of the workflow of a run. */
async function repeat(db: TestDatabase, organizationId: string, id: string, count: number): Promise<void> {
  const { workflow_id, workflow_version, workflow_name } = await db.system('runs').where({ id }).first()
  await db.tenant(organizationId, testActor, async (tx) => {
    const workflow = { id: workflow_id, version: workflow_version, name: workflow_name }
    for (let i = 0; i < count; i++)
      await createRun(tx, { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START })
  })
}

const countOf = async (db: TestDatabase, organizationId: string, statuses: string[]) => {
  const [row] = await db
    .system('runs')
    .where({ organization_id: organizationId })
    .whereIn('status', statuses)
    .count('* as count')
  return Number(row!.count)
}

describe('a backlog of one organization', function () {
  this.timeout(60_000 + BACKLOG * 200)
  const warnings: string[] = []
  let segments = 0
  let mostSegments = 0
  const suite = withWorker({
    advance: (advance) => async (input) => {
      mostSegments = Math.max(mostSegments, ++segments)
      return advance(input).finally(() => {
        segments -= 1
      })
    },
    log: createLogger('worker', 'warn', { write: (line: string) => void warnings.push(line) }),
    http: async () => {
      await new Promise((resolve) => setTimeout(resolve, CALL_MS))
      return httpResponse({ status: 200 })
    },
  })

  it('delays the run of another by few of its own', async () => {
    const [hog, other] = [await createOrganization(suite.db), await createOrganization(suite.db)]
    await repeat(suite.db, hog, await queueRun(suite.db, hog, calls), BACKLOG)
    while ((await countOf(suite.db, hog, ['completed'])) < 20)
      await new Promise((resolve) => setTimeout(resolve, 50))
    const id = await queueRun(suite.db, other, calls)
    assert.equal((await untilRun(suite.db, id, undefined, 120)).status, 'completed')
    const waiting = await countOf(suite.db, hog, ['queued'])
    assert.ok(waiting > 0, 'the backlog was too short')
    // Not those that were in progress when it was queued: on a fast machine more of them end.
    const run = await suite.db.system('runs').where({ id }).first('created_at', 'ended_at')
    const overtaking = await suite.db
      .system('runs')
      .where({ organization_id: hog })
      .where('started_at', '>', run.created_at)
      .where('ended_at', '<', run.ended_at)
    assert.ok(
      overtaking.length <= MOST_BEFORE,
      `${overtaking.length} runs began after it was queued and ended before it, of ${waiting} queued ones`,
    )
    await suite.db.system('runs').where({ organization_id: hog, status: 'queued' }).delete()
  })

  it('drains without a failed start, and each run is started once', async () => {
    const organizationId = await createOrganization(suite.db)
    const { workflow } = suite.worker.client
    const original = workflow.start
    const starts: string[] = []
    mostSegments = 0
    workflow.start = (async (type, options) => {
      starts.push(options.workflowId)
      return original.call(workflow, type, options)
    }) as typeof original
    try {
      const first = await queueRun(suite.db, organizationId, light)
      const runs = BACKLOG / 2
      await repeat(suite.db, organizationId, first, runs - 1)
      let [ended, since] = [0, Date.now()]
      while (ended < runs) {
        await new Promise((resolve) => setTimeout(resolve, 100))
        const now = await countOf(suite.db, organizationId, ['completed'])
        assert.ok(
          now > ended || Date.now() - since < 120_000,
          `${now} of ${runs} runs have ended, and no more do`,
        )
        if (now > ended) [ended, since] = [now, Date.now()]
      }
    } finally {
      workflow.start = original
    }
    // Without this bound, as many as there are active runs wait for the connections of one pool, and some too long.
    assert.ok(mostSegments > 1 && mostSegments <= segmentsAtOnce(POOL), `${mostSegments} segments at once`)
    // The relay warns of each start that fails.
    assert.deepEqual(warnings, [])
    const own = await suite.db.system('runs').where({ organization_id: organizationId }).pluck('id')
    assert.deepEqual(starts.sort(), own.map((id) => `run:${id}`).sort())
  })
})
