import type { InputSpec, ScheduleSpec, Trigger } from '../../workflows/language/definition.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { touchSchedule } from './schedules.ts'

/** The triggers of the version that is being activated, and its declared inputs. */
export interface ActiveTriggers {
  version: number
  triggers: Trigger[]
  inputs: Record<string, InputSpec>
}

/**
 * Replaces the rows of `workflow_triggers` with the triggers of the version that is being activated, or deletes them if
 * the workflow is deactivated or deleted. The caller has locked the workflow's row.
 */
export async function replaceTriggers(
  tx: Tenant,
  workflowId: string,
  active?: ActiveTriggers,
): Promise<void> {
  const key = { organization_id: tx.organizationId, workflow_id: workflowId }
  const [replaced] = await tx
    .trx('workflow_triggers')
    .where(key)
    .delete()
    .returning<{ active_since: Date }[]>('active_since')
  await touchSchedule(tx, workflowId, active?.triggers.some(({ type }) => type === 'schedule') ?? false)
  if (!active || active.triggers.length === 0) return
  const { inputs } = checkInputs(active.inputs, {})
  await tx.trx('workflow_triggers').insert(
    active.triggers.map((trigger, position) => ({
      ...key,
      position,
      version: active.version,
      inputs: JSON.stringify(inputs),
      // Keeps the time of the first activation, so that a newer version misses no event that is still in the outbox.
      ...(replaced ? { active_since: replaced.active_since } : {}),
      type: trigger.type,
      ...(trigger.type === 'event' ? { events: trigger.events, when: trigger.when ?? null } : {}),
      ...(trigger.type === 'schedule' ? { schedule: JSON.stringify(scheduleOf(trigger)) } : {}),
    })),
  )
}

const scheduleOf = ({ type: _, ...schedule }: Trigger & { type: 'schedule' }): ScheduleSpec => schedule

/** The error with which a trigger failed to start a run, as its row stores it. `at` is ISO 8601. */
export interface TriggerProblem {
  message: string
  at: string
  /** The event name of an event trigger. */
  event?: string
  event_id?: string
}

/** A problem with the key of its trigger and the number of occurrences. */
export interface FoundProblem extends TriggerProblem {
  organization_id: string
  workflow_id: string
  position: number
  version: number
  count: number
}

/** Records the last problem of each trigger, unless the trigger was replaced. */
export async function recordProblems(system: System, problems: FoundProblem[]): Promise<void> {
  await system.raw(
    `update workflow_triggers t set problems = t.problems + p.count,
       problem = jsonb_build_object('message', p.message, 'at', p.at, 'event', p.event, 'event_id', p.event_id)
     from jsonb_to_recordset(?) as p(organization_id uuid, workflow_id uuid, position integer, version integer,
       count integer, message text, at text, event text, event_id uuid)
     where t.organization_id = p.organization_id and t.workflow_id = p.workflow_id and t.position = p.position
       and t.version = p.version`,
    [JSON.stringify(problems)],
  )
}
