import assert from 'node:assert/strict'
import { computeInline, LightWork } from '../../activities/compute/light-work.ts'
import type { tasks } from '../../activities/compute/tasks.ts'
import type { Pool } from '../../db/process/compute/pool.ts'
import { createOrganization } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/** Threads that are busy until `go`, each with the organization that waits for it. */
class BusyThreads {
  readonly waiting: string[] = []
  most = 0
  private release: () => void = () => {}
  private readonly free = new Promise<void>((resolve) => {
    this.release = resolve
  })

  readonly run: Pool<typeof tasks>['run'] = async (turn, name, ...values) => {
    const owner = typeof turn === 'string' ? turn : turn.owner
    this.waiting.push(owner)
    this.most = Math.max(this.most, this.waiting.length)
    await this.free
    this.waiting.splice(this.waiting.indexOf(owner), 1)
    return computeInline(name, ...values) as never
  }

  readonly close = async () => {}

  go(): void {
    this.release()
  }
}

const SEGMENTS = 20
/** A long number has the text read again in a thread. */
const LONG = `[12345678901234567890, "${'x'.repeat(100_000)}"]`
const parses = {
  nodes: [{ id: 'it', type: 'parse_json', config: { text: '{{ inputs.text }}' } }],
  inputs: { text: { type: 'string' as const } },
}

describe('segments that wait for a thread', () => {
  const threads = new BusyThreads()
  after(() => threads.go())
  const suite = withWorker({ lightWork: new LightWork({ threads, segments: SEGMENTS }) })

  it('leave most slots of the worker to others, and fail nothing', async () => {
    const other = await createOrganization(suite.db)
    const ids: string[] = []
    for (let n = 0; n < SEGMENTS; n++)
      ids.push(await queueRun(suite.db, suite.organizationId, parses, { text: LONG }))
    await until(async () => threads.waiting.length > 0, 'segments that wait')
    const { status } = await untilRun(suite.db, await queueRun(suite.db, other, parses, { text: '{}' }))
    assert.equal(status, 'completed')
    // A place is left for the long text of another organization, too.
    const last = await queueRun(suite.db, other, parses, { text: LONG })
    await until(async () => threads.waiting.includes(other), 'a long text of another')
    assert.ok(threads.most <= SEGMENTS / 4, `${threads.most} segments waited`)
    const stuck = await suite.db.system('runs').whereNotNull('stuck_reason').select('stuck_reason')
    assert.deepEqual(stuck, [])
    threads.go()
    for (const id of [...ids, last]) assert.equal((await untilRun(suite.db, id)).status, 'completed')
  })
})
