import {
  failedNode,
  loopsAround,
  prepareRetry,
  type RetriedNode,
  renewedNodes,
  undoneNodes,
} from '../../workflows/interpret/retry.ts'
import type { RunError, RunTrigger } from '../../workflows/interpret/run-state.ts'
import type { Program } from '../../workflows/language/definition.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import type { RunStatus } from '../../workflows/shared/statuses.ts'
import { AppError, invalid, notFound } from '../model/errors.ts'
import { isOpenRun } from '../model/runs/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { findById, getProgram, getWorkflow, type Runnable } from '../workflows/workflows.ts'
import { requireNoOtherRetry } from './other-retries.ts'
import { copyKept, type LoopRetry, prepareLoops, type RetryFrame } from './retry-loops.ts'
import { createRun } from './runs.ts'

export const RETRY_VERSIONS = ['same', 'latest'] as const

/** The options of a retry. By default it starts with the node that failed the run, or from the start if none did. */
export interface RetryOptions {
  from_node?: string | undefined
  /**
   * If `from_node` is in a loop: the paths of the items that run again from it. Default: all items that did not
   * complete.
   */
  items?: string[] | undefined
  from_start?: boolean | undefined
  version: (typeof RETRY_VERSIONS)[number]
}

interface RetriedRun {
  id: string
  workflow_id: string
  workflow_version: number
  status: RunStatus
  trigger: RunTrigger
  inputs: Record<string, unknown>
  error: RunError | null
  record_id: string | null
  retry_of: string | null
  key_runs: Record<string, string> | null
  depth: number
  cause: string | null
}

/** A valid retry. */
export interface PlannedRetry {
  run: RetriedRun
  workflow: Pick<Runnable, 'id' | 'name' | 'version' | 'program'>
  inputs: Record<string, unknown>
  /** Null: from the start. */
  from_node: string | null
  items: string[] | undefined
  /** The nodes whose outputs are reused, and those that may run. */
  reused: string[]
  again: string[]
  /** The nodes that the retried run has undone: they have their effects again. */
  undone: string[]
  /** The nodes with idempotency keys of their own. */
  renewed: string[]
  /** The loops that resume where they stopped. */
  loops: LoopRetry[]
  /** The reused nodes per item. Without frames, nothing is reused. */
  frames: RetryFrame[]
}

/**
 * Previews a retry of a run. Throws `not_found`, `conflict` if the run has not ended or cannot be retried with these
 * options, or another retry stands against it, and `validation_error` if the newest version does not accept the inputs
 * of the run. No other retry of the run can be made until the transaction ends.
 */
export async function prepareRetryOf(tx: Tenant, id: string, options: RetryOptions): Promise<PlannedRetry> {
  const planned = await planRetry(tx, id, options)
  await requireNoOtherRetry(tx, planned.run, planned)
  return planned
}

async function planRetry(tx: Tenant, id: string, options: RetryOptions): Promise<PlannedRetry> {
  const run = await tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, id, kind: 'run' })
    .first<RetriedRun | undefined>(
      'id',
      'workflow_id',
      'workflow_version',
      'status',
      'trigger',
      'inputs',
      'error',
      'record_id',
      'retry_of',
      'key_runs',
      'depth',
      'cause',
    )
  if (!run) throw notFound('run')
  if (isOpenRun(run.status))
    throw new AppError('conflict', `the run is ${run.status}: only a run that has ended can be retried`, {
      hint: 'cancel or terminate it first',
    })
  const workflow = await versionOf(tx, run, options)
  const { inputs, problems } = checkInputs(workflow.program.inputs, run.inputs)
  if (problems.length > 0)
    throw invalid(
      problems.map(({ name, message, type }) => ({
        loc: ['body', 'version'],
        msg: `version ${workflow.version} does not accept the input ${name} of the run: ${message}`,
        type,
      })),
    )
  const rows = await tx
    .trx('run_nodes')
    .where({ organization_id: tx.organizationId, run_id: id, path: '' })
    .select<RetriedNode[]>('path', 'node_id', 'node_type', 'status', 'handle', 'undoes')
  const { program } = workflow
  const from_node = options.from_start ? null : (options.from_node ?? failedNode(run.error, rows))
  const prepared = {
    run,
    workflow,
    inputs,
    from_node,
    items: options.items,
    undone: undoneNodes(rows),
    renewed: renewedNodes(program, rows),
  }
  if (from_node === null) {
    if (options.items) throw new AppError('conflict', 'items requires from_node', { param: 'items' })
    return { ...prepared, reused: [], again: Object.keys(program.nodes), loops: [], frames: [] }
  }
  const [loop] = loopsAround(program, from_node)
  // The loop node that failed the run through one of its items resumes; a loop named in `from_node` runs all items
  // again.
  const again = loop === undefined && options.from_node !== undefined
  const top = prepareRetry(program, rows, { from: loop ?? from_node, again })
  if (typeof top === 'string') throw new AppError('conflict', top, { param: 'from_node' })
  const { reused, resumed } = top
  const wanted = { from_node: loop === undefined ? null : from_node, items: options.items }
  const { frames, loops } = await prepareLoops(tx, id, program, { reused, resumed }, wanted)
  if (loop !== undefined && prepared.undone.includes(loop))
    throw new AppError('conflict', `what ${loop} has done was undone, so all of its items run again`, {
      param: 'from_node',
      hint: `start with ${loop}`,
    })
  if (loop !== undefined && !loops.some((one) => one.again > 0))
    throw new AppError('conflict', `all items of the loop around ${from_node} have completed`, {
      param: 'from_node',
      hint: 'send the paths of the items to run again in items',
    })
  return { ...prepared, reused, again: top.again, loops, frames }
}

async function versionOf(
  tx: Tenant,
  { workflow_id, workflow_version }: RetriedRun,
  { version }: RetryOptions,
): Promise<PlannedRetry['workflow']> {
  const newest = await getWorkflow(tx, workflow_id).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.type !== 'not_found') throw error
    throw new AppError('conflict', 'the workflow of the run was deleted')
  })
  if (version === 'latest') return findById(tx, workflow_id, newest.version)
  return {
    id: workflow_id,
    version: workflow_version,
    ...(await getProgram(tx, workflow_id, workflow_version)),
  }
}

/** An effect on another run is reused only if that run succeeded or still may: a failed child is started again. */
const REUSABLE_EFFECTS = `(e.object <> 'run' or exists (
  select from runs c where c.organization_id = e.organization_id and c.id = e.object_id
    and c.status in ('queued', 'running', 'paused', 'completed')))`

/**
 * Queues a retry: a new run with the rows of the reused nodes. It keeps the idempotency keys of the first run, and a
 * node that runs again finds the objects that it created before.
 * @param priority as in `runs`: 0 if a client waits for it. @returns the id of the new run.
 */
export async function createRetry(
  tx: Tenant,
  { run, workflow, inputs, from_node, items, frames, renewed }: PlannedRetry,
  priority: 0 | 1,
): Promise<string> {
  const { organizationId } = tx
  const id = await createRun(tx, {
    workflow,
    trigger: run.trigger,
    inputs,
    ...(run.record_id === null ? {} : { record_id: run.record_id }),
    chain: { depth: run.depth, cause: run.cause },
  })
  await tx.trx.raw(
    `update runs set retry_of = :first, retry = :retry, key_runs = :key_runs, reopened = true, priority = :priority,
       starts_with = coalesce(:startsWith, starts_with)
     where organization_id = :organizationId and id = :id`,
    {
      organizationId,
      id,
      priority,
      first: run.retry_of ?? run.id,
      key_runs: keysOf(run.key_runs, renewed, id),
      retry: JSON.stringify({ run_id: run.id, from_node, ...(items && { items }) }),
      startsWith: from_node === null ? null : workflow.program.nodes[from_node]!.title,
    },
  )
  if (frames.length > 0) await copyKept(tx, { from: run.id, to: id }, frames)
  await copyEffects(tx, { first: run.retry_of ?? run.id, to: id }, workflow.program)
  return id
}

/**
 * Copies the effects that stand of the runs with the same first run: of each node those of the newest run that has any,
 * so that a retry also finds what another retry of the same run has created. What was undone since does not stand.
 */
async function copyEffects(
  tx: Tenant,
  { first, to }: { first: string; to: string },
  program: Program,
): Promise<void> {
  const undoneWith = Object.fromEntries(
    Object.keys(program.nodes).map((id) => [id, loopsAround(program, id)]),
  )
  await tx.trx.raw(
    `with family as (
       select id from runs
       where organization_id = :organizationId and (id = :first or retry_of = :first) and id <> :to
     )
     insert into run_effects (organization_id, run_id, path, node_id, n, object, object_id, result)
     select e.organization_id, :to, e.path, e.node_id, e.n, e.object, e.object_id, e.result
     from run_effects e
     where e.organization_id = :organizationId and e.run_id in (select id from family) and ${REUSABLE_EFFECTS}
       and not exists (
         select from run_effects l
         where l.organization_id = e.organization_id and l.run_id in (select id from family) and l.run_id > e.run_id
           and l.path = e.path and l.node_id = e.node_id)
       and not exists (
         select from run_nodes u
         where u.organization_id = e.organization_id and u.run_id in (select id from family) and u.run_id >= e.run_id
           and u.path = '' and u.status = 'completed'
           and (u.undoes = e.node_id or jsonb_exists(cast(:undoneWith as jsonb) -> e.node_id, u.undoes)))
       and not exists (
         select from run_nodes n
         where n.organization_id = e.organization_id and n.run_id = e.run_id and n.path = e.path
           and n.node_id = e.node_id and n.role is not null)`,
    { organizationId: tx.organizationId, first, to, undoneWith: JSON.stringify(undoneWith) },
  )
}

/** The runs whose idempotency keys nodes have. */
function keysOf(earlier: Record<string, string> | null, renewed: string[], id: string): string | null {
  if (renewed.length === 0) return earlier && JSON.stringify(earlier)
  return JSON.stringify({ ...earlier, ...Object.fromEntries(renewed.map((node) => [node, id])) })
}
