import { maskedValue } from '../../workflows/interpret/mask.ts'
import type { RunError } from '../../workflows/interpret/run-state.ts'
import { SAMPLE } from '../../workflows/shared/limits.ts'
import { AppError, conflict, notFound } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The sample output of a node, for tests of the workflow's other nodes. */
export interface Sample {
  node_id: string
  output: unknown
  /** The run that produced the output, and the iteration of its node; null: it was written by hand. */
  run_id: string | null
  path: string | null
  updated_at: Date
}

const COLUMNS = ['node_id', 'output', 'run_id', 'path', 'updated_at'] as const

const samplesOf = (tx: Tenant, workflow_id: string) =>
  tx.trx('workflow_samples').where({ organization_id: tx.organizationId, workflow_id })

/** The samples of a workflow, by node id. */
export const listSamples = (tx: Tenant, workflowId: string): Promise<Sample[]> =>
  samplesOf(tx, workflowId).orderBy('node_id').select<Sample[]>(COLUMNS)

/**
 * Saves the sample output of a node with secrets masked, and replaces the earlier one. Locks the row of the workflow.
 * Throws `payload_too_large`; `conflict` if the workflow has too many samples.
 */
export async function saveSample(
  tx: Tenant,
  workflowId: string,
  { node_id, output, ...from }: Pick<Sample, 'node_id' | 'output' | 'run_id' | 'path'>,
): Promise<Sample> {
  const json = JSON.stringify(maskedValue(output ?? null))
  if (Buffer.byteLength(json) > SAMPLE.bytes)
    throw new AppError('payload_too_large', `the sample is larger than ${SAMPLE.bytes / 1024} KiB as JSON`, {
      hint: 'keep the members that other nodes read, and few items of lists',
    })
  const others = await samplesOf(tx, workflowId).whereNot({ node_id }).pluck('node_id')
  if (others.length >= SAMPLE.count)
    throw conflict(`the workflow has ${SAMPLE.count} samples`, { hint: 'delete a sample that no test needs' })
  const key = { organization_id: tx.organizationId, workflow_id: workflowId, node_id }
  const [row] = await tx
    .trx('workflow_samples')
    .insert({ ...key, output: json, ...from })
    .onConflict(['organization_id', 'workflow_id', 'node_id'])
    .merge({ output: json, ...from, updated_at: tx.trx.fn.now() })
    .returning<Sample[]>(COLUMNS)
  return row!
}

/** The output of a node in a run of the workflow. Throws `not_found`; `conflict` if it did not complete. */
export async function outputInRun(
  tx: Tenant,
  workflowId: string,
  { run_id, path, node_id }: { run_id: string; path: string; node_id: string },
): Promise<unknown> {
  const run = await tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, id: run_id, workflow_id: workflowId, kind: 'run' })
    .first('id')
  if (!run) throw notFound('run of this workflow')
  const row = await tx
    .trx('run_nodes')
    .where({ organization_id: tx.organizationId, run_id, path, node_id })
    .first<{ status: string; output: unknown } | undefined>('status', 'output')
  if (row?.status === 'completed') return row.output
  throw conflict(`the node ${node_id} ${row ? `is ${row.status}` : 'did not start'} in this run`, {
    hint: 'choose a run, and for a node in a loop the path of an item, in which the node has completed',
  })
}

/** @returns false if the node had none. */
export async function deleteSample(tx: Tenant, workflowId: string, nodeId: string): Promise<boolean> {
  return (await samplesOf(tx, workflowId).where({ node_id: nodeId }).delete()) > 0
}

/** How a node of a run has ended. */
export interface NodeResult {
  path: string
  node_id: string
  output: unknown
  handle: string | null
  error: RunError | null
}

/** Characters of the outputs of a run that are read at once. */
const MOST_CHARACTERS = 2_000_000
/** Nodes of a run that are read at once. */
const MOST_NODES = 500

/** The runs among which `lastRun` looks for one that has completed. */
const NEWEST_RUNS = 1_000

/** The id of the newest run of a workflow that has completed. Throws `not_found`. */
export async function lastRun(tx: Tenant, workflowId: string): Promise<string> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select id from (
       select id, status from runs where organization_id = :organizationId and workflow_id = :workflowId
       order by id desc limit :limit) newest
     where status = 'completed' order by id desc limit 1`,
    { organizationId: tx.organizationId, workflowId, limit: NEWEST_RUNS },
  )
  const [run] = rows
  if (!run) throw notFound('run of this workflow that has completed', 'run it once, or give stubs')
  return run.id
}

/**
 * The results of those of these nodes that have completed or failed in a run of the workflow, the first ones up to a
 * limit. Throws `not_found` for the run.
 */
export async function resultsInRun(
  tx: Tenant,
  workflowId: string,
  runId: string,
  nodeIds: readonly string[],
): Promise<NodeResult[]> {
  const { organizationId } = tx
  const run = await tx
    .trx('runs')
    .where({ organization_id: organizationId, id: runId, workflow_id: workflowId })
    .first('id')
  if (!run) throw notFound('run of this workflow')
  const { rows } = await tx.trx.raw<{ rows: NodeResult[] }>(
    `select path, node_id, output, handle, error from (
       select n.*, sum(coalesce(length(cast(n.output as text)), 0)) over (order by n.started_at, n.position, n.path, n.node_id) as so_far
       from (select path, node_id, output, handle, error, started_at, position from run_nodes
         where organization_id = :organizationId and run_id = :runId and node_id = any(cast(:nodeIds as text[]))
           and status in ('completed', 'failed')
         order by started_at, position, path, node_id limit :limit) n) r
     where so_far <= :most`,
    { organizationId, runId, nodeIds: [...nodeIds], limit: MOST_NODES, most: MOST_CHARACTERS },
  )
  return rows
}
