import type { Knex } from 'knex'
import { evaluateWhen } from '../../workflows/interpret/when.ts'
import type { CancelRule } from '../../workflows/language/definition.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import type { EventAnswer } from '../../workflows/nodes/wait-for.ts'
import { TRIGGER_WHEN } from '../../workflows/shared/limits.ts'
import { createTurns } from '../../workflows/shared/turns.ts'
import { EVENTS_BY_KEY, keysOf } from '../events/by-key.ts'
import { AppError } from '../model/errors.ts'
import type { EventKey } from '../model/events/event.ts'
import { isRefusal } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { definePagedJobs, type JobKey } from '../queue/paged-jobs.ts'
import { EVENT, recordEvents } from './event-waits.ts'
import { cancelRun } from './moves/ends.ts'
import { ORGANIZATION_FACTS } from './state.ts'
import { TRIGGER_EVENT } from './waits.ts'

/**
 * Events that cancel open runs (`settings.cancel_on`). The transaction that matches an event inserts a row for each
 * workflow that has open runs which it may cancel; workers compare it with these runs page by page, and request the
 * cancellations in the transaction that stores the progress. So neither a kill nor a flood of events loses one, and
 * matching costs other organizations nothing.
 */

/** SQL: whether some version of a workflow names the event `e` in `cancel_on`. */
export const isCancelEvent = (e: string): string => `exists (
  select from workflow_cancel_events c where c.organization_id = ${e}.organization_id and c.event = ${e}.name)`

/** SQL: whether the run `r` is open, and events can cancel it. The condition of partial indexes. */
const IS_OPEN = 'r.cancel_on and r.ended_at is null'

/**
 * SQL: whether the run `r` is about something before the event `e`. What an event triggered is as old as that event, any
 * other run as old as its row, by the database's clock: ids have the clocks of several hosts. Ids decide within a
 * millisecond, as a segment may start a run and raise an event.
 */
export const IS_BEFORE = `case when ${TRIGGER_EVENT} is null then (r.created_at, r.id) < (e.created_at, e.id)
  else (cast(r.trigger #>> '{event,created_at}' as timestamptz), ${TRIGGER_EVENT}) < (e.created_at, e.id) end`

/** SQL: the time that counts as the age of the run `r` in it. */
export const BEGAN_AT = `case when ${TRIGGER_EVENT} is null then r.created_at
  else cast(r.trigger #>> '{event,created_at}' as timestamptz) end`

/** Queues the comparison of these events with open runs. @returns the number of rows. */
export async function queueEventCancels(trx: Knex, events: EventKey[]): Promise<number> {
  if (events.length === 0) return 0
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `insert into event_cancels (organization_id, id, event_id, workflow_id)
     select e.organization_id, gen_random_uuid(), e.id, c.workflow_id
     from ${EVENTS_BY_KEY} join workflow_cancel_events c on c.organization_id = e.organization_id and c.event = e.name
     where case when c.same_record
       then (select r.id from runs r where r.organization_id = e.organization_id and r.record_id = e.subject_id
         and r.workflow_id = c.workflow_id and ${IS_OPEN} and ${IS_BEFORE} order by r.id limit 1)
       -- in the order of the index: PostgreSQL may read all runs otherwise
       else (select r.id from runs r where r.organization_id = e.organization_id and r.workflow_id = c.workflow_id
         and ${IS_OPEN} and ${IS_BEFORE} order by r.id limit 1) end is not null
     on conflict (organization_id, event_id, workflow_id) do nothing`,
    { ...keysOf(events) },
  )
  return rowCount
}

export interface EventCancel extends JobKey {
  event_id: string
  workflow_id: string
}

/** Jobs of one organization in work at once: others have a turn beside a flood of its events. */
const SLOTS = 4

export const eventCancels = definePagedJobs<EventCancel>('event_cancels', 'true', SLOTS, [
  'event_id',
  'workflow_id',
])

interface Compared {
  event: EventAnswer
  org: Record<string, unknown>
  env: Record<string, unknown>
  same_record: boolean
  after_id: string
}

/** SQL: the run `r` of the version `v`, as its conditions read it. */
export const OPEN_RUN = `r.id, r.workflow_id, r.workflow_name, to_jsonb(coalesce(r.started_at, r.created_at)) as started_at, r.trigger, r.inputs,
       v.cancel_on as rules`

export interface OpenRun {
  id: string
  workflow_id: string
  workflow_name: string
  started_at: string
  trigger: Record<string, unknown>
  inputs: Record<string, unknown>
  rules: CancelRule[]
}

/** Time limit of the conditions of one page, in milliseconds: its transaction must not stay open for long. */
const BUDGET_MS = 100

/**
 * Compares the event with the next open runs of the workflow, and cancels those for which a condition holds. A condition
 * that cannot be rendered is a problem of its run alone. @returns whether there may be more.
 */
export async function cancelPage(tx: Tenant, job: EventCancel, limit: number): Promise<boolean> {
  const compared = await lockJob(tx, job)
  if (!compared) return false
  const runs = await listRuns(tx, job, compared, limit)
  const { matches, problems, checked } = await evaluate(tx, runs, compared)
  await noteProblems(tx, compared.event, problems)
  for (const id of matches) {
    const refusal = await cancel(tx, id, compared.event)
    if (refusal) await noteProblems(tx, compared.event, [{ id, message: refusal }])
  }
  const more = checked < runs.length || runs.length === limit
  const row = tx.trx('event_cancels').where({ organization_id: tx.organizationId, id: job.id })
  if (more) await row.update({ after_id: runs[checked - 1]!.id })
  else await row.delete()
  return more
}

async function lockJob(tx: Tenant, { id, workflow_id }: EventCancel): Promise<Compared | undefined> {
  const { rows } = await tx.trx.raw<{ rows: Compared[] }>(
    `select ${EVENT} as event, ${ORGANIZATION_FACTS} as org, o.env, j.after_id,
       coalesce((select c.same_record from workflow_cancel_events c where c.organization_id = e.organization_id
         and c.event = e.name and c.workflow_id = :workflowId), false) as same_record
     from event_cancels j join events e on e.organization_id = j.organization_id and e.id = j.event_id
       join organizations o on o.id = j.organization_id
     where j.organization_id = :organizationId and j.id = :id
     for no key update of j`,
    { organizationId: tx.organizationId, id, workflowId: workflow_id, recordEvents },
  )
  return rows[0]
}

/** A run that raised the event itself is not cancelled by it, nor one whose cancellation was requested. */
async function listRuns(
  tx: Tenant,
  { event_id, workflow_id }: EventCancel,
  { same_record, after_id }: Compared,
  limit: number,
): Promise<OpenRun[]> {
  const { rows } = await tx.trx.raw<{ rows: OpenRun[] }>(
    `select ${OPEN_RUN}
     from events e join runs r on r.organization_id = e.organization_id
       ${same_record ? 'and r.record_id = e.subject_id' : ''}
       join workflow_versions v on v.organization_id = r.organization_id and v.workflow_id = r.workflow_id
         and v.version = r.workflow_version
     where e.organization_id = :organizationId and e.id = :eventId and r.organization_id = :organizationId
       and r.workflow_id = :workflowId and r.id > :after and ${IS_OPEN} and ${IS_BEFORE}
       and r.cancel_requested_at is null and r.id is distinct from e.cause
     order by r.id limit :limit`,
    {
      organizationId: tx.organizationId,
      eventId: event_id,
      workflowId: workflow_id,
      after: after_id,
      limit,
    },
  )
  return rows
}

export interface Problem {
  id: string
  message: string
}

/** @returns the runs to cancel, and how many were compared: at least one, if there is any. */
export async function evaluate(
  { organizationId }: Tenant,
  runs: OpenRun[],
  { event, org, env }: Pick<Compared, 'event' | 'org' | 'env'>,
): Promise<{ matches: string[]; problems: Problem[]; checked: number }> {
  const matches: string[] = []
  const problems: Problem[] = []
  const turn = createTurns(organizationId)
  const until = performance.now() + BUDGET_MS
  let checked = 0
  for (const { rules, trigger, inputs, ...run } of runs) {
    if (checked > 0 && performance.now() > until) break
    checked += 1
    const scope = { event, trigger, inputs, run, org, env }
    for (const { events, when } of rules) {
      if (!events.includes(event.name)) continue
      await turn()
      const holds = when === undefined || evaluateWhen(when, scope, TRIGGER_WHEN)
      if (holds instanceof NodeError) problems.push({ id: run.id, message: `when: ${holds.message}` })
      else if (holds) {
        matches.push(run.id)
        break
      }
    }
  }
  return { matches, problems, checked }
}

export const reasonOf = ({ name, id }: EventAnswer): string =>
  `The run was cancelled by the event ${name} ${id} (settings.cancel_on).`

/** @returns why the run cannot be cancelled, which does not keep the others from it. */
async function cancel(tx: Tenant, id: string, event: EventAnswer): Promise<string | undefined> {
  try {
    await savepoint(tx, (inner) => cancelRun(inner, id, reasonOf(event)))
    return undefined
  } catch (error) {
    if (error instanceof AppError) return error.message
    if (isRefusal(error)) return 'the database refused the cancellation'
    throw error
  }
}

export async function noteProblems(tx: Tenant, event: EventAnswer, problems: Problem[]): Promise<void> {
  if (problems.length === 0) return
  await tx.trx.raw(
    `update runs r set cancel_problem = jsonb_build_object('message', p.message, 'event', cast(:event as text),
       'event_id', cast(:eventId as text), 'at', cast(:at as text))
     from jsonb_to_recordset(:problems) as p(id uuid, message text)
     where r.organization_id = :organizationId and r.id = p.id and r.ended_at is null`,
    {
      organizationId: tx.organizationId,
      event: event.name,
      eventId: event.id,
      at: new Date().toISOString(),
      problems: JSON.stringify(problems),
    },
  )
}
