import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client'
import { purgeIdempotencyKeys } from '../db/access/idempotency.ts'
import { purgeLimitWindows } from '../db/access/limits.ts'
import { purgeSessions } from '../db/access/users.ts'
import { purgeExports } from '../db/exports/purge.ts'
import { purgeImports } from '../db/imports/purge.ts'
import { purgeIncoming } from '../db/incoming/receiving.ts'
import type { Logger } from '../db/log.ts'
import { purgeOutgoing } from '../db/outgoing/purge.ts'
import type { Database } from '../db/postgres/connect.ts'
import { runAlone } from '../db/postgres/queue-lock.ts'
import { SYSTEM, type System } from '../db/postgres/tenancy.ts'
import { purgeRecords } from '../db/records/purge.ts'
import { endUnrecordedRun, resumeRun } from '../db/runs/moves.ts'
import { type IdleRun, listIdleRuns, markRunChecked } from '../db/runs/queue.ts'
import type { EndStatus } from '../workflows/interpret/statuses.ts'
import { REFRESH } from '../workflows/protocol.ts'
import { workflowIdOf } from './queues/runs.ts'
import { sweepDeliveries } from './sweep-deliveries.ts'
import { sweepFiles } from './sweep-files.ts'

const EVERY_MS = 60_000
/** A run without a write for this long is looked up in Temporal, the longest idle first. */
const IDLE = '30 seconds'
const BATCH = 200
/** A pending task with more attempts is stuck. */
const MAX_ATTEMPTS = 3

type UnrecordedEnd = Exclude<EndStatus, 'completed'>

/**
 * Runs once a minute in one of the workers. Records the end of workflows that ended without recording it (an operator
 * terminated them, or they timed out), records why a run is stuck, marks runs unknown to Temporal as lost, and deletes
 * rows past their retention.
 */
export class Sweep {
  private readonly db: Database
  private readonly client: Client
  private readonly log: Logger
  private timer: NodeJS.Timeout | undefined
  private sweeping: Promise<void> | undefined

  constructor(deps: { db: Database; client: Client; log: Logger }) {
    this.db = deps.db
    this.client = deps.client
    this.log = deps.log
  }

  start(): void {
    this.timer = setInterval(() => {
      this.sweeping ??= this.once()
        .catch((error) => this.log.error({ err: error }, 'the sweep failed'))
        .finally(() => {
          this.sweeping = undefined
        })
    }, EVERY_MS)
  }

  async close(): Promise<void> {
    clearInterval(this.timer)
    await this.sweeping
  }

  /** Sweeps once, unless another worker is sweeping. `idle` is for tests. */
  async once(idle = IDLE): Promise<void> {
    await runAlone(this.db.system, 'agx sweep', async (system) => {
      await this.reconcile(idle)
      await sweepDeliveries({ db: this.db, client: this.client, log: this.log }, idle)
      await sweepFiles({ db: this.db, client: this.client, log: this.log }, idle)
      await cleanUp(system)
    })
  }

  private async reconcile(idle: string): Promise<void> {
    for (const run of await listIdleRuns(this.db.system, idle, BATCH)) {
      const found = await this.inspect(run)
      if (found.end === 'lost' && (await this.resume(run))) continue
      if (found.stale) await this.refresh(run)
      if (found.end) await this.end(run, found.end, found.reason)
      else await markRunChecked(this.db.system, run, found.reason ?? null)
    }
  }

  private async inspect(row: IdleRun): Promise<{ end?: UnrecordedEnd; reason?: string; stale?: boolean }> {
    try {
      const description = await this.client.workflow.getHandle(workflowIdOf(row)).describe()
      const end = ENDS[description.status.name]
      if (!end) {
        const reason = stuckReason(description)
        if (reason) return { reason }
        const { raw } = description
        const calls = raw.pendingActivities?.length ?? 0
        return { stale: row.kind === 'run' && (row.overdue || row.calls > calls) }
      }
      return { end, reason: `The workflow was ${description.status.name.toLowerCase()} in Temporal.` }
    } catch (error) {
      if (error instanceof WorkflowNotFoundError)
        return { end: 'lost', reason: "Temporal no longer has the run's workflow." }
      throw error
    }
  }

  /** The database was restored to an earlier moment: the workflow waits for something else, and must hear of it. */
  private async refresh(run: IdleRun): Promise<void> {
    await this.client.workflow
      .getHandle(workflowIdOf(run))
      .signal(REFRESH)
      .catch((err) => this.log.warn({ err, run_id: run.id }, 'a run could not be refreshed'))
  }

  /**
   * Temporal does not know the workflow, or the workflow has completed without a record, because the database was
   * restored to an earlier moment: the run continues from its rows.
   */
  private async resume({ organization_id, id, temporal_run_id }: IdleRun): Promise<boolean> {
    const resumed = await this.db.tenant(organization_id, SYSTEM, (tx) => resumeRun(tx, id, temporal_run_id))
    if (resumed) this.log.warn({ organization_id, run_id: id }, 'resumed a run that Temporal had lost')
    return resumed
  }

  private async end(run: IdleRun, status: UnrecordedEnd, reason = ''): Promise<void> {
    const { organization_id, id, temporal_run_id } = run
    const error = { code: status, message: reason }
    const ended = await this.db.tenant(organization_id, SYSTEM, (tx) =>
      endUnrecordedRun(tx, id, temporal_run_id, status, error),
    )
    if (ended) this.log.warn({ organization_id, run_id: id, status }, 'recorded the end of a run')
  }
}

/** The end status of a running row, by the status of its workflow in Temporal. */
const ENDS: Record<string, UnrecordedEnd | undefined> = {
  COMPLETED: 'lost',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'failed',
}

function stuckReason({ raw }: WorkflowExecutionDescription): string | undefined {
  const activity = raw.pendingActivities?.find(({ attempt }) => (attempt ?? 0) > MAX_ATTEMPTS)
  if (activity)
    return `Activity ${activity.activityType?.name} is at attempt ${activity.attempt}: ${activity.lastFailure?.message ?? ''}`
  const task = raw.pendingWorkflowTask
  if (task && (task.attempt ?? 0) > MAX_ATTEMPTS) return `The workflow task is at attempt ${task.attempt}.`
  return undefined
}

async function cleanUp(system: System): Promise<void> {
  await purgeIdempotencyKeys(system)
  await purgeLimitWindows(system)
  await purgeIncoming(system)
  await purgeOutgoing(system)
  await purgeImports(system)
  await purgeExports(system)
  await purgeSessions(system)
  await purgeRecords(system)
}
