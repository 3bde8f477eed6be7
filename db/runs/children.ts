import { nodeKey } from '../../workflows/interpret/frames.ts'
import type { ChildEnd, RunNode } from '../../workflows/interpret/run-state.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { CHAIN_DEPTH } from '../../workflows/shared/limits.ts'
import { takeFromWindow } from '../access/limits.ts'
import { limitSql } from '../access/plans.ts'
import { notFound } from '../model/errors.ts'
import { chainError, tooWide } from '../model/runs/chain.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { findByReference } from '../workflows/workflows.ts'
import { createRun } from './runs.ts'
import { descendantsOf } from './storms.ts'

/** A run that was started by a node of another run, its parent. The parent is the actor of the transaction. */
export interface ChildRun {
  run_id: string
  workflow_id: string
}

/** Queues a child run; the relay starts it when a slot is free. Throws NodeError, `not_found`, `ambiguous_name`. */
export async function startChild(
  tx: Tenant,
  workflow: string,
  given: Record<string, unknown>,
): Promise<ChildRun> {
  const parent = tx.actor.id!
  const found = await findByReference(tx, workflow)
  const above = await listAncestors(tx, parent)
  if (above.some(({ workflow_id }) => workflow_id === found.id))
    throw new NodeError(
      'workflow_loop',
      `The workflow ${JSON.stringify(found.name)} is already running above this node: it cannot start itself.`,
    )
  const depth = (above[0]?.depth ?? 0) + 1
  const tooLong = chainError(depth, parent)
  if (tooLong) throw new NodeError(tooLong.code, tooLong.message)
  const { inputs, problems } = checkInputs(found.program.inputs, given)
  if (problems.length > 0)
    throw new NodeError(
      'invalid_inputs',
      problems
        .map(({ message }) => message)
        .join(' ')
        .slice(0, 2_000),
    )
  if (above[0]) await takeOfBudget(tx, above[0])
  const run_id = await createRun(tx, {
    workflow: { id: found.id, version: found.version, name: found.name },
    trigger: { type: 'run', run_id: parent },
    inputs,
    parent_run_id: parent,
    chain: { depth, cause: parent },
  })
  return { run_id, workflow_id: found.id }
}

/** Counts a child among what descends from its root. Throws NodeError. */
async function takeOfBudget(tx: Tenant, { root, most }: Ancestor): Promise<void> {
  const { granted } = await takeFromWindow(tx.trx, descendantsOf(tx.organizationId, root, most))
  if (granted > 0) return
  const { code, message } = tooWide(root, most)
  throw new NodeError(code, message)
}

interface Ancestor {
  workflow_id: string | null
  depth: number
  /** The root of its chain. */
  root: string
  /** What may descend from the root. */
  most: number
}

/** The child with this id; undefined if it was purged. */
export async function findChild(tx: Tenant, id: string): Promise<ChildRun | undefined> {
  const row = await tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, id })
    .first<{ workflow_id: string } | undefined>('workflow_id')
  return row && { run_id: id, workflow_id: row.workflow_id }
}

/** The ancestors of a run: the run itself, its parent and so on, nearest first. */
async function listAncestors(tx: Tenant, runId: string): Promise<Ancestor[]> {
  const { rows } = await tx.trx.raw<{ rows: Ancestor[] }>(
    `with recursive above as (
       select r.workflow_id, r.parent_run_id, r.depth, coalesce(r.root, r.id) as root, 0 as distance from runs r
       where r.organization_id = :organizationId and r.id = :runId
       union all
       select r.workflow_id, r.parent_run_id, r.depth, coalesce(r.root, r.id), above.distance + 1
       from above join runs r on r.organization_id = :organizationId and r.id = above.parent_run_id
       where above.distance < ${CHAIN_DEPTH}
     )
     select above.workflow_id, above.depth, above.root, ${limitSql('max_descendants')} as most
     from above join organizations o on o.id = :organizationId order by above.distance`,
    { organizationId: tx.organizationId, runId },
  )
  return rows
}

/** SQL: the end of the run `r`, as its parent reads it. */
const CHILD_END = `jsonb_build_object('run_id', r.id, 'workflow_id', r.workflow_id, 'workflow_name', r.workflow_name,
  'status', r.status, 'outputs', r.outputs, 'error', r.error)`

/** The end of a child run; undefined while it is open. Throws `not_found` if it was purged. */
export async function findChildEnd(tx: Tenant, id: string): Promise<ChildEnd | undefined> {
  const { rows } = await tx.trx.raw<{ rows: { ended: boolean; child: ChildEnd }[] }>(
    `select r.ended_at is not null as ended, ${CHILD_END} as child from runs r
     where r.organization_id = ? and r.id = ?`,
    [tx.organizationId, id],
  )
  if (!rows[0]) throw notFound('run')
  return rows[0].ended ? rows[0].child : undefined
}

/** Records that nodes of a run wait for the ends of its children. A child that has already ended answers at once. */
export async function insertChildWaits(
  tx: Tenant,
  runId: string,
  waits: { path: string; node_id: string; child_run_id: string }[],
): Promise<void> {
  if (waits.length === 0) return
  const { rows } = await tx.trx.raw<{ rows: { answered: boolean }[] }>(
    `insert into run_waits (organization_id, run_id, path, node_id, id, type, subject_id, answer, answered_at)
     select r.organization_id, :runId, w.path, w.node_id, gen_random_uuid(), 'child_run', r.id,
       case when r.ended_at is not null then ${CHILD_END} end, r.ended_at
     from jsonb_to_recordset(cast(:waits as jsonb)) as w(path text, node_id text, child_run_id uuid)
     join runs r on r.organization_id = :organizationId and r.id = w.child_run_id
     on conflict (organization_id, run_id, path, node_id) do update set id = excluded.id, subject_id = excluded.subject_id,
       answer = excluded.answer, answered_at = excluded.answered_at, notified_at = null, lease_until = null
     returning answered_at is not null as answered`,
    { organizationId: tx.organizationId, runId, waits: JSON.stringify(waits) },
  )
  if (rows.some(({ answered }) => answered)) tx.wake('agx_waits')
}

/** Answers the parent's wait for a child that has ended, in the same transaction; the relay signals the parent. */
export async function answerParent(tx: Tenant, childId: string): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update run_waits w set answer = ${CHILD_END}, answered_at = now()
     from runs r
     where r.organization_id = :organizationId and r.id = :childId and r.ended_at is not null
       and w.organization_id = r.organization_id and w.subject_id = r.id and w.type = 'child_run'
       and w.answered_at is null`,
    { organizationId: tx.organizationId, childId },
  )
  if (rowCount > 0) tx.wake('agx_waits')
}

/** The ended children of these waiting nodes of a run, by the keys of the nodes. */
export async function listAnswers(
  tx: Tenant,
  runId: string,
  waiting: Pick<RunNode, 'path' | 'node_id'>[],
): Promise<Map<string, ChildEnd>> {
  const rows = await tx
    .trx('run_waits')
    .where({ organization_id: tx.organizationId, run_id: runId, type: 'child_run' })
    .whereIn(
      ['path', 'node_id'],
      waiting.map(({ path, node_id }) => [path, node_id]),
    )
    .whereNotNull('answered_at')
    .select<{ path: string; node_id: string; answer: ChildEnd }[]>('path', 'node_id', 'answer')
  return new Map(rows.map(({ path, node_id, answer }) => [nodeKey(path, node_id), answer]))
}

/** The children for which nodes of a run still wait, or only these nodes. */
export async function listAwaited(
  tx: Tenant,
  runId: string,
  nodes?: Pick<RunNode, 'path' | 'node_id'>[],
): Promise<string[]> {
  const query = tx
    .trx('run_waits')
    .where({ organization_id: tx.organizationId, run_id: runId, type: 'child_run', answered_at: null })
  const keys = nodes?.map(({ path, node_id }) => [path, node_id])
  if (keys) query.whereIn(['path', 'node_id'], keys)
  const rows = await query.select<{ subject_id: string }[]>('subject_id')
  return rows.map(({ subject_id }) => subject_id)
}
