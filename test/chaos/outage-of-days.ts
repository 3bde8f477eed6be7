import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client'
import { startLoadRun, statusOf } from '../load/operations.ts'
import { until } from '../support/until.ts'
import type { Fault } from './situation.ts'

/** The attempts of two days, and Temporal's limits of a history, are divided by it. */
const SCALE = 20
/** Temporal terminates a workflow with more events (`limit.historyCount.error`). */
const MOST_EVENTS = 51_200 / SCALE
/** Temporal suggests to continue as new from so many. */
const SUGGESTED = 4_096 / SCALE
const RUNS = 2
const WAIT_SECONDS = 900

/**
 * PostgreSQL is away for two days: each attempt of `advance`, every 20 s, is six events of a history, so that it would
 * exceed Temporal's limit. The pauses between the attempts are left out.
 */
export const postgresAwayForDays: Fault = {
  name: 'postgres-away-for-days',
  title: `PostgreSQL is down for two days, without the pauses between attempts, and a ${SCALE}th of their number`,
  kind: 'outage',
  system: {
    pace: { attempts: 100 / SCALE, firstRetry: '2 ms', lastRetry: '2 ms', longestPauseInTask: '1 ms' },
    temporalLimits: {
      'limit.historyCount.error': MOST_EVENTS,
      'limit.historyCount.suggestContinueAsNew': Math.floor(SUGGESTED),
    },
  },
  openRuns: 1,
  async strike({ system, load }) {
    const connection = await Connection.connect({ address: system.stack.temporalAddress })
    const client = new Client({ connection })
    try {
      const ids = await Promise.all(Array.from({ length: RUNS }, () => startLoadRun(load)))
      const last = ids.at(-1)!
      await until(async () => (await statusOf(load, last)) !== 'queued', 'a run')
      await system.down(['postgres'], () =>
        until(
          async () =>
            Math.max(...(await Promise.all(ids.map((id) => eventsOf(client, id))))) > MOST_EVENTS ||
            undefined,
          `${MOST_EVENTS} events of a run`,
          WAIT_SECONDS,
        ).then(() => {}),
      )
    } finally {
      await connection.close()
    }
    return {}
  },
}

/** The events of all executions of a run's workflow. */
async function eventsOf({ workflow }: Client, id: string): Promise<number> {
  const workflowId = `run:${id}`
  let events = 0
  for await (const { historyLength } of workflow.list({ query: `WorkflowId = '${workflowId}'` }))
    events += historyLength
  // The list has no length of an open one.
  const open = await workflow.getHandle(workflowId).describe().catch(ifMissing)
  return events + (open?.status.name === 'RUNNING' ? open.historyLength : 0)
}

function ifMissing(error: unknown): undefined {
  if (!(error instanceof WorkflowNotFoundError)) throw error
}
