import type { Client } from '@temporalio/client'
import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { databaseId } from '../../db/postgres/database-id.ts'
import type { Logger } from '../../db/process/log.ts'
import { claimRuns, releaseRuns, repairClaims } from '../../db/runs/claims.ts'
import { failRunStart } from '../../db/runs/moves/ends.ts'
import { markRunsStarted, resumeRun } from '../../db/runs/moves/starts.ts'
import type { ClaimedRun } from '../../db/runs/queue.ts'
import { endRelay, seeRelay } from '../../db/runs/relays.ts'
import type { run, testNode } from '../../workflows/bundle/index.ts'
import { REFRESH, RUN_WORKFLOW_VERSION } from '../../workflows/bundle/protocol.ts'
import { summaryOf } from '../../workflows/bundle/summary.ts'
import type { NamespaceAttributes } from '../namespace-attributes.ts'
import type { Queue } from '../relay.ts'
import type { RunCapacity } from '../run-capacity.ts'
import { searchAttributes } from '../search-attributes.ts'
import { wentBack } from '../went-back.ts'
import { type StartWorkflow, workflowStarter } from './start-workflow.ts'

export const workflowIdOf = (row: { id: string; kind: string }) =>
  row.kind === 'run' ? `run:${row.id}` : `node-test:${row.id}`

/**
 * Runs in their first segment per worker. Each takes some 8 ms of CPU: 16 keep a worker busy, and more would only delay
 * the run of another organization behind them.
 */
const STARTS = 16
/** Number of heartbeats between two repairs of claims. */
const REPAIR_EVERY = 5

export interface QueueDeps {
  db: Database
  /** The relay of this worker; its queue of runs reports that it is alive. */
  relayId: string
  taskQueue: string
  log: Logger
  attributes: NamespaceAttributes
  capacity: RunCapacity
}

/** Runs of workflows and tests of nodes. */
export function runsQueue({
  db,
  relayId: id,
  taskQueue,
  attributes,
  capacity,
}: Omit<QueueDeps, 'log'>): Queue<ClaimedRun> {
  const startWorkflow = workflowStarter(taskQueue, attributes)
  const relay = () => ({ id, starts: STARTS, active: capacity.active })
  let beats = 0
  return {
    name: 'runs',
    channel: 'agx_runs',
    claim: (system, limit) => claimRuns(system, relay(), limit),
    async start(client, row) {
      const database = await databaseId(db.system)
      if (await startRun(startWorkflow, client, row, database)) return
      const handle = client.workflow.getHandle(workflowIdOf(row))
      const workflow = await handle.describe()
      const { status, runId, raw } = workflow
      if (row.kind !== 'run') return
      if (status.name === 'RUNNING') {
        // Any other workflow is the one that resumes the run.
        if (row.resumes === 0 || runId !== row.temporal_run_id) return
        if (wentBack(workflow, row)) {
          await client.workflow.getHandle(workflowIdOf(row), runId).terminate(WENT_BACK)
          throw new Error('the workflow of a resumed run, of which Temporal had an earlier state, was ended')
        }
        // The one that paused the run is about to end, unless Temporal was restored to a moment before the pause.
        if (!raw.pendingWorkflowTask) await handle.signal(REFRESH)
        throw new Error('the workflow that paused the run has not ended yet')
      }
      // The workflow has closed, and the row is still queued: the database was restored to an earlier moment.
      const resumed = await db.tenant(row.organization_id, SYSTEM, (tx) =>
        resumeRun(tx, row.id, row.temporal_run_id),
      )
      if (resumed) throw new Error('the workflow of a queued run had closed; the run is started again')
    },
    started: markRunsStarted,
    failed: (system, rows) => releaseRuns(system, relay(), rows),
    async beat(system, rows) {
      capacity.adjust(await seeRelay(system, relay()))
      if (++beats % REPAIR_EVERY !== 0) return
      const known = rows.map(({ id }) => id)
      await repairClaims(system, relay(), known)
    },
    leave: (system) => endRelay(system, relay()),
    refused: (db, row, reason) =>
      db.tenant(row.organization_id, SYSTEM, (tx) => failRunStart(tx, row.id, reason)),
  }
}

const WENT_BACK = 'the run goes on in a new workflow: Temporal was restored to an earlier state of this one'

function startRun(
  startWorkflow: StartWorkflow,
  client: Client,
  row: ClaimedRun,
  database: string,
): Promise<boolean> {
  const { organization_id, id, workflow_id, record_id, expected_by } = row
  const shared = {
    workflowId: workflowIdOf(row),
    organizationId: organization_id,
    summary: summaryOf(`${row.workflow_name} (${row.organization_name})`),
    // Temporal does not know the workflow of a resumed run; if it does after all, the row decides who owns it.
    again: row.resumes > 0,
    memo: { run_id: id, workflow_id, workflow_version: row.workflow_version },
    attributes: [
      { key: searchAttributes.trigger, value: row.trigger_type },
      ...(workflow_id
        ? [
            { key: searchAttributes.workflow, value: workflow_id },
            { key: searchAttributes.workflowName, value: row.workflow_name },
          ]
        : []),
      ...(record_id ? [{ key: searchAttributes.record, value: record_id }] : []),
      ...(expected_by ? [{ key: searchAttributes.expectedBy, value: expected_by }] : []),
    ],
  }
  if (row.kind === 'node_test')
    return startWorkflow<typeof testNode>(client, {
      ...shared,
      workflow: 'testNode',
      args: [{ organization_id, test_id: id, ...(row.pool && { pool: row.pool }) }],
    })
  return startWorkflow<typeof run>(client, {
    ...shared,
    workflow: 'run',
    args: [
      {
        engine: RUN_WORKFLOW_VERSION,
        organization_id,
        run_id: id,
        starts_with: row.starts_with ?? 'Start',
        database,
        ...(row.segment !== null && { resume: { segment: row.segment, count: row.resumes } }),
      },
    ],
  })
}
