import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client'
import type { Knex } from 'knex'
import { purgeIdempotencyKeys } from '../db/access/idempotency.ts'
import { purgeLimitWindows } from '../db/access/limits.ts'
import { purgeSessions } from '../db/access/users.ts'
import { purgeExports } from '../db/exports/purge.ts'
import { purgeImports } from '../db/imports/purge.ts'
import { purgeIncoming } from '../db/incoming/receiving.ts'
import type { Logger } from '../db/log.ts'
import { purgeOutgoing } from '../db/outgoing/purge.ts'
import type { Database } from '../db/postgres/connect.ts'
import { purgeRecords } from '../db/records/purge.ts'
import { lockRun } from '../db/runs/state.ts'
import type { EndStatus } from '../workflows/interpret/statuses.ts'
import { workflowIdOf } from './queues/runs.ts'
import { recordEnd } from './record-end.ts'
import { sweepDeliveries } from './sweep-deliveries.ts'
import { sweepFiles } from './sweep-files.ts'

const EVERY_MS = 60_000
/** A row that no segment has touched for so long is looked up in Temporal; the longest-untouched first. */
const IDLE = '30 seconds'
const BATCH = 200
/** A pending attempt past this one is stuck. */
const MAX_ATTEMPTS = 3

interface IdleRow {
  organization_id: string
  id: string
  kind: 'run' | 'node_test'
  temporal_run_id: string | null
}

/**
 * Once a minute, in one worker of all: what ended in Temporal without its row knowing (terminated, timed out or
 * failed by an operator's hand) is recorded, what is stuck says why, what is gone is lost; and rows that have
 * served their time are deleted.
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

  /** One sweep, unless another worker is at it. `idle` is for tests. */
  async once(idle = IDLE): Promise<void> {
    // The lock is the transaction's: held as long as the sweep, free when the process dies.
    await this.db.system.transaction(async (trx) => {
      const { rows } = await trx.raw("select pg_try_advisory_xact_lock(hashtext('agx sweep')) as mine")
      if (!rows[0].mine) return
      await this.reconcile(trx, idle)
      await sweepDeliveries({ db: this.db, client: this.client, log: this.log }, idle)
      await sweepFiles({ db: this.db, client: this.client, log: this.log }, idle)
      await cleanUp(trx)
    })
  }

  private async reconcile(trx: Knex.Transaction, idle: string): Promise<void> {
    const { rows } = await trx.raw<{ rows: IdleRow[] }>(
      `select organization_id, id, kind, temporal_run_id from runs
       where status = 'running' and updated_at < now() - cast(? as interval) order by updated_at limit ?`,
      [idle, BATCH],
    )
    for (const row of rows) {
      const found = await this.look(row)
      if (found.end) await this.end(row, found.end, found.reason)
      // Touched, so that the next sweep looks at others first.
      else
        await this.db
          .system('runs')
          .where({ organization_id: row.organization_id, id: row.id, status: 'running' })
          .update({ stuck_reason: found.reason ?? null, updated_at: this.db.system.fn.now() })
    }
  }

  private async look(row: IdleRow): Promise<{ end?: EndStatus; reason?: string }> {
    try {
      const description = await this.client.workflow.getHandle(workflowIdOf(row)).describe()
      const end = ENDS[description.status.name]
      if (!end) {
        const reason = stuck(description)
        return reason ? { reason } : {}
      }
      return { end, reason: `The workflow was ${description.status.name.toLowerCase()} in Temporal.` }
    } catch (error) {
      if (error instanceof WorkflowNotFoundError)
        return { end: 'lost', reason: 'Temporal does not know the run any more.' }
      throw error
    }
  }

  private async end(row: IdleRow, status: EndStatus, reason = ''): Promise<void> {
    const { organization_id, id } = row
    await this.db.tenant(organization_id, { type: 'system', id: null }, async (tx) => {
      const state = await lockRun(tx, id, undefined)
      // After a reset, a newer Temporal run may have taken over meanwhile.
      if (state?.run.status !== 'running' || state.run.temporal_run_id !== row.temporal_run_id) return
      await recordEnd(tx, state, status, { code: status, message: reason })
    })
    this.log.warn({ organization_id, run_id: id, status }, 'a run had ended unrecorded')
  }
}

/** By Temporal's status: what the row, which says it is running, becomes. */
const ENDS: Record<string, EndStatus | undefined> = {
  COMPLETED: 'lost',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'failed',
}

function stuck({ raw }: WorkflowExecutionDescription): string | undefined {
  const activity = raw.pendingActivities?.find(({ attempt }) => (attempt ?? 0) > MAX_ATTEMPTS)
  if (activity)
    return `Activity ${activity.activityType?.name} is at attempt ${activity.attempt}: ${activity.lastFailure?.message ?? ''}`
  const task = raw.pendingWorkflowTask
  if (task && (task.attempt ?? 0) > MAX_ATTEMPTS) return `The workflow task is at attempt ${task.attempt}.`
  return undefined
}

/** Rows that have served their time. */
async function cleanUp(trx: Knex.Transaction): Promise<void> {
  await purgeIdempotencyKeys(trx)
  await purgeLimitWindows(trx)
  await purgeIncoming(trx)
  await purgeOutgoing(trx)
  await purgeImports(trx)
  await purgeExports(trx)
  await purgeSessions(trx)
  await purgeRecords(trx)
}
