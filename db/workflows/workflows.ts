import type { Knex } from 'knex'
import { validate as isUuid, v7 as uuidv7 } from 'uuid'
import { compareDefinitions, summaryOf } from '../../workflows/authoring/compare-definitions.ts'
import type { CancelRule, Definition, Program, Trigger } from '../../workflows/language/definition.ts'
import { recordChange } from '../access/audit-log.ts'
import { AppError, notFound } from '../model/errors.ts'
import { requireVersion } from '../model/lists/version.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { nearestWorkflows } from './nearest.ts'
import { touchSchedule } from './schedules.ts'
import { replaceTriggers, type TriggerProblem } from './triggers.ts'

export const WORKFLOW_STATUSES = ['DRAFT', 'active', 'inactive'] as const
export type WorkflowStatus = (typeof WORKFLOW_STATUSES)[number]

/** A workflow in a list. */
export interface WorkflowSummary {
  id: string
  name: string
  description: string | null
  status: WorkflowStatus
  /** The newest version. */
  version: number
  /** The version that triggers start; null if the workflow is not active. */
  active_version: number | null
  /** Trigger of the newest version. */
  trigger: Trigger
  created_at: Date
  updated_at: Date
}

/** The last error with which the trigger failed to start a run, and the number of failures since the activation. */
export interface WorkflowProblem extends TriggerProblem {
  count: number
}

/**
 * A workflow with the source text (null for a raw definition that is too large for a spec) and definition of its newest
 * version.
 */
export interface Workflow extends WorkflowSummary {
  spec: string | null
  definition: Definition
  trigger_problem: WorkflowProblem | null
}

/** The content of one saved version. */
export interface VersionContent {
  spec: string | null
  definition: Definition
  program: Program
}

const SUMMARY = [
  'w.id',
  'w.name',
  'w.description',
  'w.status',
  'w.version',
  'w.active_version',
  'w.created_at',
  'w.updated_at',
]

const PROBLEM = `(select t.problem || jsonb_build_object('count', t.problems) from workflow_triggers t
  where t.organization_id = w.organization_id and t.workflow_id = w.id and t.problem is not null
  order by t.problem ->> 'at' desc limit 1) as trigger_problem`

/** Saves a new workflow as a draft, version 1. */
export async function createWorkflow(
  tx: Tenant,
  workflow: VersionContent & {
    name: string
    description: string | null
    /** The workflow that this is a copy of. */
    duplicated_from?: string
  },
): Promise<Workflow> {
  const id = uuidv7()
  await tx.trx('workflows').insert({
    organization_id: tx.organizationId,
    id,
    name: workflow.name,
    description: workflow.description,
  })
  await insertVersion(tx, id, 1, workflow)
  await recordChange(tx, 'workflow.created', {
    id,
    name: workflow.name,
    details: { duplicated_from: workflow.duplicated_from },
  })
  return getWorkflow(tx, id)
}

/** Throws `not_found`. */
export async function getWorkflow(tx: Tenant, id: string): Promise<Workflow> {
  const row = await workflows(tx)
    .where('w.id', id)
    .first<Workflow | undefined>(...SUMMARY, 'v.spec', 'v.definition', trigger(tx), tx.trx.raw(PROBLEM))
  if (!row) throw notFound('workflow')
  return row
}

/** Reads a workflow and locks its row for a change in the same transaction. Throws `not_found`, `version_conflict`. */
export async function lockWorkflow(
  tx: Tenant,
  id: string,
  accepted: readonly number[] | undefined,
): Promise<Workflow> {
  await tx.trx('workflows').where({ organization_id: tx.organizationId, id }).forNoKeyUpdate().first('id')
  const row = await getWorkflow(tx, id)
  requireVersion('workflow', row.version, accepted)
  return row
}

/**
 * Updates a locked workflow; `content` creates the next version. The active version is unchanged until the next
 * activation.
 */
export async function updateWorkflow(
  tx: Tenant,
  before: Workflow,
  changes: {
    name?: string
    description?: string | null
    content?: VersionContent
    /** The version whose content this is. */
    restored_from?: number
  },
): Promise<Workflow> {
  const { id } = before
  const { content, name = before.name, description = before.description, restored_from } = changes
  if (!content && name === before.name && description === before.description) return before
  const version = before.version + (content ? 1 : 0)
  await tx
    .trx('workflows')
    .where({ organization_id: tx.organizationId, id })
    .update({ name, description, version, updated_at: tx.trx.fn.now() })
  if (content)
    await insertVersion(tx, id, version, content, {
      summary: summaryOfSave(before, content),
      ...(restored_from === undefined ? {} : { restored_from }),
    })
  if (name !== before.name) await touchSchedule(tx, id, false)
  await recordChange(tx, 'workflow.updated', { id, name, details: { version, restored_from } })
  return getWorkflow(tx, id)
}

/** Soft-deletes a workflow; runs in progress continue. Throws `not_found`. @returns the time of deletion. */
export async function deleteWorkflow(tx: Tenant, id: string): Promise<Date> {
  const [row] = await tx
    .trx('workflows')
    .where({ organization_id: tx.organizationId, id, deleted_at: null })
    .update({ deleted_at: tx.trx.fn.now(), status: 'inactive', active_version: null })
    .returning<{ deleted_at: Date; name: string }[]>(['deleted_at', 'name'])
  if (!row) throw notFound('workflow')
  await recordChange(tx, 'workflow.deleted', { id, name: row.name })
  await replaceTriggers(tx, id)
  await tx.trx('workflow_samples').where({ organization_id: tx.organizationId, workflow_id: id }).delete()
  return row.deleted_at
}

/** Activates the newest version: triggers start it. Throws `not_found`. */
export async function activate(tx: Tenant, id: string): Promise<Workflow> {
  const workflow = await setStatus(tx, id, { status: 'active', active_version: tx.trx.raw('version') })
  await replaceTriggers(tx, id, {
    version: workflow.version,
    triggers: [workflow.trigger],
    inputs: workflow.definition.inputs,
  })
  const { name, version } = workflow
  await recordChange(tx, 'workflow.activated', { id, name, details: { version } })
  return { ...workflow, trigger_problem: null }
}

/** Deactivates a workflow: triggers no longer start it; a draft stays a draft. Throws `not_found`. */
export async function deactivate(tx: Tenant, id: string): Promise<Workflow> {
  const workflow = await setStatus(tx, id, {
    status: tx.trx.raw("case status when 'DRAFT' then 'DRAFT' else 'inactive' end"),
    active_version: null,
  })
  await replaceTriggers(tx, id)
  await recordChange(tx, 'workflow.deactivated', { id, name: workflow.name })
  return { ...workflow, trigger_problem: null }
}

/** The version of a workflow that a run executes: the active one if any, else the newest. */
export interface Runnable {
  id: string
  name: string
  status: WorkflowStatus
  version: number
  program: Program
}

/**
 * The only workflow with exactly this name. Throws `not_found`, or `ambiguous_name` with the candidates
 * (`{workflow_id, name, status, created_at}`).
 */
export async function findByName(tx: Tenant, name: string): Promise<Runnable> {
  const rows = await runnables(tx)
    .where('w.name', name)
    .orderBy('w.created_at')
    .limit(20)
    .select<(Runnable & { created_at: Date })[]>(...RUNNABLE, 'w.created_at')
  const [only, ...others] = rows
  if (!only) {
    const near = (await nearestWorkflows(tx, [name])).get(name)
    const meant = near === undefined ? '' : `: did you mean ${JSON.stringify(near)}?`
    throw notFound('workflow', `there is no workflow named exactly ${JSON.stringify(name)}${meant}`)
  }
  if (others.length > 0)
    throw new AppError('ambiguous_name', `${rows.length} workflows have this name`, {
      hint: 'rename all but one, or run it by its id',
      candidates: rows.map(({ id, status, created_at }) => ({ workflow_id: id, name, status, created_at })),
    })
  return only
}

/** The workflow with this id, in `version` if given. Throws `not_found` for the workflow or the version. */
export async function findById(tx: Tenant, id: string, version?: number): Promise<Runnable> {
  const found = await runnables(tx, version)
    .where('w.id', id)
    .first<Runnable | undefined>(...RUNNABLE)
  if (found) return found
  await getWorkflow(tx, id)
  throw notFound('workflow version')
}

/**
 * The workflow with `reference` as its id or exact name; of several, the only active one: a draft that somebody begins
 * does not stop the workflows that start the one in use. Throws the errors of `findById` and `findByName`.
 */
export async function findByReference(tx: Tenant, reference: string): Promise<Runnable> {
  if (isUuid(reference)) return findById(tx, reference)
  const [active, ...others] = await runnables(tx)
    .where({ 'w.name': reference, 'w.status': 'active' })
    .limit(2)
    .select<Runnable[]>(...RUNNABLE)
  return active && others.length === 0 ? active : findByName(tx, reference)
}

const RUNNABLE = ['w.id', 'w.name', 'w.status', 'v.version', 'v.program']

const runnables = (tx: Tenant, version?: number): Knex.QueryBuilder =>
  tx
    .trx('workflows as w')
    .join('workflow_versions as v', (on) =>
      on
        .on('v.organization_id', 'w.organization_id')
        .andOn('v.workflow_id', 'w.id')
        .andOn(
          'v.version',
          version === undefined
            ? tx.trx.raw('coalesce(w.active_version, w.version)')
            : tx.trx.raw('?', [version]),
        ),
    )
    .where({ 'w.organization_id': tx.organizationId, 'w.deleted_at': null })

/** The compiled definition of one version, also of deleted workflows, for their runs. Throws `not_found`. */
export async function getProgram(
  tx: Tenant,
  workflowId: string,
  version: number,
): Promise<{ program: Program; name: string }> {
  const row = await tx
    .trx('workflow_versions as v')
    .join('workflows as w', (on) =>
      on.on('w.organization_id', 'v.organization_id').andOn('w.id', 'v.workflow_id'),
    )
    .where({ 'v.organization_id': tx.organizationId, 'v.workflow_id': workflowId, 'v.version': version })
    .first<{ program: Program; name: string } | undefined>('v.program', 'w.name')
  if (!row) throw notFound('workflow version')
  return row
}

/** The organization's workflows that are not deleted, each with its newest version. */
export function workflows(tx: Tenant): Knex.QueryBuilder {
  return tx
    .trx('workflows as w')
    .join('workflow_versions as v', (on) =>
      on
        .on('v.organization_id', 'w.organization_id')
        .andOn('v.workflow_id', 'w.id')
        .andOn('v.version', 'w.version'),
    )
    .where({ 'w.organization_id': tx.organizationId, 'w.deleted_at': null })
}

export const trigger = (tx: Tenant) => tx.trx.raw("v.definition -> 'trigger' as trigger")

export { SUMMARY }

function summaryOfSave(before: Workflow, { spec, definition }: VersionContent): string {
  const changes = summaryOf(compareDefinitions(before.definition, definition))
  return changes || (spec === before.spec ? 'changes nothing' : 'changes only the text')
}

async function insertVersion(
  tx: Tenant,
  id: string,
  version: number,
  content: VersionContent,
  since: { summary?: string; restored_from?: number } = {},
) {
  await tx.trx('workflow_versions').insert({
    organization_id: tx.organizationId,
    workflow_id: id,
    version,
    spec: content.spec,
    definition: JSON.stringify(content.definition),
    program: JSON.stringify(content.program),
    created_by: JSON.stringify(tx.actor),
    ...since,
  })
  await nameCancelEvents(tx, id, content.program.settings.cancel_on ?? [])
}

/** Names the events that cancel runs of the version; those of earlier versions stay, for their runs. */
async function nameCancelEvents(tx: Tenant, workflowId: string, rules: CancelRule[]): Promise<void> {
  const named = new Map<string, boolean>()
  for (const { events, same_record = false } of rules)
    for (const event of events) named.set(event, same_record && (named.get(event) ?? true))
  if (named.size === 0) return
  await tx.trx.raw(
    `insert into workflow_cancel_events as c (organization_id, event, workflow_id, same_record)
     select cast(:organizationId as uuid), n.event, cast(:workflowId as uuid), n.same_record
     from unnest(cast(:events as text[]), cast(:same as boolean[])) as n(event, same_record)
     on conflict (organization_id, event, workflow_id)
       do update set same_record = c.same_record and excluded.same_record`,
    {
      organizationId: tx.organizationId,
      workflowId,
      events: [...named.keys()],
      same: [...named.values()],
    },
  )
}

async function setStatus(tx: Tenant, id: string, columns: Record<string, unknown>): Promise<Workflow> {
  const changed = await tx
    .trx('workflows')
    .where({ organization_id: tx.organizationId, id, deleted_at: null })
    .update({ ...columns, updated_at: tx.trx.fn.now() })
  if (changed === 0) throw notFound('workflow')
  return getWorkflow(tx, id)
}
