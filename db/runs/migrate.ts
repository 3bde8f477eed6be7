import {
  type MigratedRun,
  type Obstacle,
  planMigration,
  type ReachedNode,
} from '../../workflows/interpret/migrate.ts'
import type { Ending } from '../../workflows/interpret/run-state.ts'
import type { Program } from '../../workflows/language/definition.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import { recordChange } from '../access/audit-log.ts'
import type { Actor } from '../model/actor.ts'
import { AppError, conflict, invalid } from '../model/errors.ts'
import { requireVersion } from '../model/lists/version.ts'
import { isOpenRun } from '../model/runs/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { getProgram, getWorkflow } from '../workflows/workflows.ts'
import { lockStatus, UNCLAIMED } from './moves/lock-status.ts'
import { refreshUnless } from './moves/pauses.ts'
import { leastEngine } from './relays.ts'

/** A migration of a run to another version of its workflow. `at` is ISO 8601. */
export interface RunMigration {
  from_version: number
  to_version: number
  at: string
  by: Actor
}

/** The number of a version, or the newest one, active or not. */
export type WantedVersion = number | 'latest'

interface OpenRun {
  id: string
  workflow_id: string
  workflow_version: number
  workflow_name: string
  inputs: Record<string, unknown>
  migrations: RunMigration[] | null
  ending: Ending | null
}

/** Migrations that a run shows; the audit log has all. */
const SHOWN = 50

/**
 * Moves an open run to another version of its workflow. Its row is locked: a segment in progress commits before, and the
 * next one runs the new version, at once if the run has a workflow in Temporal. Throws `not_found`, `validation_error`
 * for a version that does not exist, `version_conflict` unless `accepted` has the new version, and `conflict` if the run
 * has ended or has that version, or with all that stands against it. @returns the new version.
 */
export async function migrateRun(
  tx: Tenant,
  id: string,
  wanted: WantedVersion,
  accepted?: readonly number[],
): Promise<number> {
  const { version, changed } = await ensureVersion(tx, id, wanted, accepted)
  if (!changed)
    throw conflict(`the run has version ${version} of its workflow`, {
      param: 'version',
      hint: 'send another version',
    })
  return version
}

/** The same for a run that may have the version already: then nothing is changed. */
export async function ensureVersion(
  tx: Tenant,
  id: string,
  wanted: WantedVersion,
  accepted?: readonly number[],
): Promise<{ version: number; changed: boolean }> {
  const status = await lockStatus(tx, id)
  if (!isOpenRun(status))
    throw conflict(`the run is ${status}: only an open run can be migrated`, {
      hint: 'retry it with `version: latest`',
    })
  const [run] = await readOpenRuns(tx, [id])
  const version = await findVersion(tx, run!.workflow_id, wanted)
  requireVersion('workflow', version, accepted)
  if (version === run!.workflow_version) return { version, changed: false }
  const before = await getProgram(tx, run!.workflow_id, run!.workflow_version)
  const after = await getProgram(tx, run!.workflow_id, version)
  const state = (await readStates(tx, [id])).get(id)!
  const plan = planOf(run!, [before.program, after.program], state, await leastEngine(tx))
  if (plan.obstacles.length > 0) throw refusal(version, plan.obstacles)
  await insertPassed(tx, id, after.program, plan.passed, state)
  await moveTo(tx, run!, version, plan.inputs)
  return { version, changed: true }
}

/** What a migration would refuse, without a lock: a run may go on until it is migrated. @returns an error for each. */
export async function listMigrationRefusals(
  tx: Tenant,
  ids: string[],
  wanted: WantedVersion,
): Promise<{ run_id: string; error: AppError }[]> {
  const least = await leastEngine(tx)
  const programs = new Map<string, Program>()
  const programOf = async (workflowId: string, version: number): Promise<Program> => {
    const key = `${workflowId} ${version}`
    if (!programs.has(key)) programs.set(key, (await getProgram(tx, workflowId, version)).program)
    return programs.get(key)!
  }
  const targets = new Map<string, number | AppError>()
  const targetOf = async (workflowId: string): Promise<number | AppError> => {
    if (!targets.has(workflowId))
      targets.set(
        workflowId,
        await findVersion(tx, workflowId, wanted).catch((error: unknown) => {
          if (error instanceof AppError) return error
          throw error
        }),
      )
    return targets.get(workflowId)!
  }
  const states = await readStates(tx, ids)
  const refusals: { run_id: string; error: AppError }[] = []
  for (const run of await readOpenRuns(tx, ids)) {
    const version = await targetOf(run.workflow_id)
    if (typeof version !== 'number') {
      refusals.push({ run_id: run.id, error: version })
      continue
    }
    const [before, after] = [
      await programOf(run.workflow_id, run.workflow_version),
      await programOf(run.workflow_id, version),
    ]
    const { obstacles } = planOf(run, [before, after], states.get(run.id)!, least)
    if (obstacles.length > 0) refusals.push({ run_id: run.id, error: refusal(version, obstacles) })
  }
  return refusals
}

const readOpenRuns = (tx: Tenant, ids: string[]): Promise<OpenRun[]> =>
  tx
    .trx('runs')
    .where({ organization_id: tx.organizationId })
    .whereIn('id', ids)
    .orderBy('id', 'desc')
    .select('id', 'workflow_id', 'workflow_version', 'workflow_name', 'inputs', 'migrations', 'ending')

function planOf(
  run: OpenRun,
  [before, after]: [Program, Program],
  state: MigratedRun,
  least: number,
): { obstacles: Obstacle[]; passed: string[]; inputs: Record<string, unknown> } {
  const { obstacles, passed } = planMigration(before, after, state)
  const { inputs, problems } = checkInputs(after.inputs, run.inputs)
  const all = [
    ...endingObstacles(run),
    ...inputObstacles(problems),
    ...engineObstacles(after, least),
    ...obstacles,
  ]
  return { obstacles: all, passed, inputs }
}

/**
 * The number of the wanted version. Throws the error of `deleted` for a workflow that was deleted, and `validation_error`
 * for a version that it does not have.
 */
export async function findVersion(
  tx: Tenant,
  workflowId: string,
  wanted: WantedVersion,
  deleted: () => AppError = ofDeletedWorkflow,
): Promise<number> {
  const { version: newest } = await getWorkflow(tx, workflowId).catch((error: unknown) => {
    throw error instanceof AppError && error.type === 'not_found' ? deleted() : error
  })
  if (wanted === 'latest') return newest
  if (wanted >= 1 && wanted <= newest) return wanted
  const msg = `the workflow has no version ${wanted}`
  const hint = newest === 1 ? 'it has only version 1' : `it has the versions 1 to ${newest}`
  throw invalid([{ loc: ['body', 'version'], msg, type: 'unknown_version', hint }])
}

const ofDeletedWorkflow = () =>
  conflict('the workflow of the run was deleted', { hint: 'the run goes on as it is, or cancel it' })

/** SQL: the loops around a node or a loop, from its path: `outer/inner`. */
const LOOPS = (path: string) => `regexp_replace(${path}, ':[0-9]+', '', 'g')`

/** What the migrations of these runs depend on. */
async function readStates(tx: Tenant, ids: string[]): Promise<Map<string, MigratedRun>> {
  const bindings = { organizationId: tx.organizationId, ids }
  const { rows: reached } = await tx.trx.raw<{
    rows: (Omit<ReachedNode, 'loops'> & { run_id: string; loops: string })[]
  }>(
    `select run_id, node_id, node_type, ${LOOPS('path')} as loops, bool_or(status in ('running', 'waiting')) as open,
       bool_and(status = 'skipped') as skipped
     from run_nodes where organization_id = :organizationId and run_id = any(cast(:ids as uuid[]))
     group by 1, 2, 3, 4 order by min(segment), min(position), node_id`,
    bindings,
  )
  const top = await tx
    .trx('run_nodes')
    .where({ organization_id: tx.organizationId, path: '' })
    .whereIn('run_id', ids)
    .select<(MigratedRun['top'][number] & { run_id: string })[]>(
      'run_id',
      'node_id',
      'status',
      'handle',
      'settled_segment',
    )
  // A loop that a retry resumes has no row in run_nodes before.
  const { rows: loops } = await tx.trx.raw<{ rows: { run_id: string; loop: string }[] }>(
    `select distinct l.run_id, ${LOOPS('l.loop')} as loop from run_loops l
     where l.organization_id = :organizationId and l.run_id = any(cast(:ids as uuid[])) and (l.open or not exists (
       select from run_nodes n where n.organization_id = l.organization_id and n.run_id = l.run_id and n.path = l.path
         and n.node_id = l.node_id))
     order by 2`,
    bindings,
  )
  const split = (text: string) => (text === '' ? [] : text.split('/'))
  const states = new Map<string, MigratedRun>(ids.map((id) => [id, { reached: [], top: [], loops: [] }]))
  for (const { run_id, ...row } of reached)
    states.get(run_id)!.reached.push({ ...row, loops: split(row.loops) })
  for (const { run_id, ...row } of top) states.get(run_id)!.top.push(row)
  for (const { run_id, loop } of loops) states.get(run_id)!.loops.push(split(loop))
  return states
}

const inputObstacles = (problems: ReturnType<typeof checkInputs>['problems']): Obstacle[] =>
  problems.map(({ name, message }) => ({
    code: 'input_refused',
    node_id: null,
    message: `the new version does not accept the inputs of the run: ${message}`,
    hint: `declare the input ${name} so that it accepts them, optional or with a default`,
  }))

/** Which nodes are undone, and how, is decided by the version with which the run came to its end. */
const endingObstacles = ({ ending }: OpenRun): Obstacle[] =>
  ending
    ? [
        {
          code: 'run_ending',
          node_id: null,
          message: `it ends as ${ending.status}: its cleanup nodes run in the version that it has`,
          hint: 'wait for its end, and retry it with `version: latest`',
        },
      ]
    : []

/** Older workers refuse the segments of such a run: it would wait for the end of their deployment. */
function engineObstacles({ engine }: Program, least: number): Obstacle[] {
  if (engine <= least) return []
  const message = `the new version needs the engine ${engine}, and a worker or this service has ${least}`
  return [{ code: 'engine_too_new', node_id: null, message, hint: 'deploy the new release everywhere first' }]
}

const NAMED = 10

function refusal(version: number, obstacles: Obstacle[]): AppError {
  const named = obstacles.slice(0, NAMED).map(({ node_id, message }) => `${node_id ?? 'run'}: ${message}`)
  const others = obstacles.length > NAMED ? `; and ${obstacles.length - NAMED} more` : ''
  const message = `version ${version} cannot continue the run: ${named.join('; ')}`
  return conflict(message.slice(0, 2_000) + others, {
    param: 'version',
    hint: obstacles[0]!.hint,
    obstacles,
  })
}

/**
 * Skips the added nodes that the run has passed. A reset in Temporal to a segment before that of the nodes that lead to
 * one deletes its row, so that it runs after them.
 */
async function insertPassed(
  tx: Tenant,
  id: string,
  { nodes }: Program,
  passed: string[],
  { top }: MigratedRun,
): Promise<void> {
  if (passed.length === 0) return
  const settled = new Map(top.map(({ node_id, settled_segment }) => [node_id, settled_segment ?? 0]))
  for (const node of passed) {
    const sources = nodes[node]!.incoming.flatMap(
      (edge) => settled.get(edge.slice(0, edge.indexOf(':'))) ?? [],
    )
    settled.set(node, sources.length > 0 ? Math.max(...sources) : 0)
  }
  const now = new Date()
  await tx.trx('run_nodes').insert(
    passed.map((node, n) => ({
      organization_id: tx.organizationId,
      run_id: id,
      node_id: node,
      node_type: nodes[node]!.type,
      title: nodes[node]!.title,
      status: 'skipped',
      segment: settled.get(node),
      settled_segment: settled.get(node),
      position: top.length + n,
      started_at: now,
      ended_at: now,
    })),
  )
}

async function moveTo(
  tx: Tenant,
  run: OpenRun,
  version: number,
  inputs: Record<string, unknown>,
): Promise<void> {
  const { id, workflow_version: from_version } = run
  const migration: RunMigration = {
    from_version,
    to_version: version,
    at: new Date().toISOString(),
    by: tx.actor,
  }
  await tx.trx.raw(
    `update runs set workflow_version = v.version, engine = v.engine, concurrency = v.concurrency,
       on_limit = v.on_limit, cancel_on = v.cancel_on is not null,
       -- one that is held is decided about again, by the settings of the version
       hold = case when runs.hold is not null then 'admission' end,
       hold_until = case when runs.hold is not null then now() end, expected_by = runs.created_at + make_interval(secs => v.expected_ms / 1000.0), inputs = :inputs, migrations = :migrations, updated_at = now(),
       starts_with = case when runs.started_at is null and runs.retry is null then v.starts_with else runs.starts_with end,
       ${refreshUnless(`(runs.status = 'paused' or ${UNCLAIMED})`)}
     from workflow_versions v
     where runs.organization_id = :organizationId and runs.id = :id and v.organization_id = runs.organization_id
       and v.workflow_id = runs.workflow_id and v.version = :version`,
    {
      organizationId: tx.organizationId,
      id,
      version,
      inputs: JSON.stringify(inputs),
      migrations: JSON.stringify([...(run.migrations ?? []), migration].slice(-SHOWN)),
    },
  )
  const details = { workflow_id: run.workflow_id, from_version, to_version: version }
  await recordChange(tx, 'run.migrated', { id, name: run.workflow_name, details })
  tx.wake('agx_run_commands')
  // The limits of the version apply to a queued run.
  tx.wake('agx_runs')
  tx.wake('agx_run_changed', id)
}
