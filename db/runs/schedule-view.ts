import type { ScheduleSpec } from '../../workflows/language/definition.ts'
import { notFound } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { getOperatorPause, getPause, getTriggerSchedule, type SchedulePause } from '../workflows/schedules.ts'
import { getWorkflow, type WorkflowProblem } from '../workflows/workflows.ts'
import { type Fire, listFires, waitingFires } from './fires.ts'

/** A schedule, as the API shows it. */
export interface ScheduleView {
  /** The version that has this schedule. */
  version: number
  state: 'active' | 'paused' | 'inactive'
  schedule: ScheduleSpec
  pause: SchedulePause | null
  /** The note of an operator's pause in Temporal, which the API cannot end. */
  operator_pause: string | null
  problem: WorkflowProblem | null
  waiting: number
  fires: Fire[]
}

/** The newest times that a schedule shows. */
export const SHOWN_FIRES = 10

/**
 * The schedule of the active version; without one that of the newest version, which is inactive. Throws `not_found` for
 * the workflow or the schedule.
 */
export async function getSchedule(tx: Tenant, workflowId: string): Promise<ScheduleView> {
  const workflow = await getWorkflow(tx, workflowId)
  const active = await getTriggerSchedule(tx, workflowId)
  const pause = await getPause(tx, workflowId)
  const history = {
    problem: workflow.trigger_problem,
    operator_pause: await getOperatorPause(tx, workflowId),
    waiting: await waitingFires(tx, workflowId),
    fires: await listFires(tx, workflowId, SHOWN_FIRES),
  }
  if (active) return { ...active, state: pause ? 'paused' : 'active', pause, ...history }
  const { version, trigger } = workflow
  if (trigger.type !== 'schedule')
    throw notFound('schedule', 'give the workflow a trigger of the type schedule')
  const { type: _, ...schedule } = trigger
  return { version, schedule, state: 'inactive', pause, ...history }
}
