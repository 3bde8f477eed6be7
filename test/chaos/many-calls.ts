import { setTimeout as pause } from 'node:timers/promises'
import { OPEN_CALLS } from '../../workflows/shared/limits.ts'
import { pauseRunById, resumeRunById, startManyCalls, statusOf } from '../load/operations.ts'
import { MANY_CALLS } from '../load/target.ts'
import { until } from '../support/until.ts'
import type { Fault, Situation } from './situation.ts'

const WAIT_SECONDS = 120
/** In this time a run would make calls above its limit. */
const SETTLED_MS = 1_000

/** A run with more calls than Temporal lets a workflow wait for. The account has all of them. */
export const manyCallsResumed: Fault = {
  name: 'calls-resumed',
  title: `a run with ${MANY_CALLS.toLocaleString('en')} calls is paused and resumed, and the worker is killed in them`,
  kind: 'outage',
  async strike(on) {
    const { system, outside, load } = on
    const id = await startManyCalls(load)
    outside.hold(`${id} `)
    try {
      await allInProgress(on, id)
      await pauseRunById(load, id)
      outside.release()
      await until(async () => (await statusOf(load, id)) === 'paused', 'the pause', WAIT_SECONDS)
      outside.hold(`${id} `)
      await resumeRunById(load, id)
      await allInProgress(on, id)
      system.kill('worker')
    } finally {
      outside.release()
    }
    return {}
  },
}

/** Waits until as many calls are held as a run may have in progress. Throws if there are more, or too few. */
async function allInProgress({ outside, load }: Situation, id: string): Promise<void> {
  const enough = () => outside.held() >= OPEN_CALLS || undefined
  await until(enough, `the calls of ${id}`, WAIT_SECONDS).catch(async (error: Error) => {
    throw new Error(`${error.message}: ${outside.held()} are held, the run is ${await statusOf(load, id)}`)
  })
  await pause(SETTLED_MS)
  if (outside.held() > OPEN_CALLS) throw new Error(`${outside.held()} calls of ${id} are in progress`)
}
