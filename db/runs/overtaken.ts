import type { EventAnswer } from '../../workflows/nodes/wait-for.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { firstIdAt } from '../retention/purge.ts'
import {
  BEGAN_AT,
  evaluate,
  IS_BEFORE,
  noteProblems,
  OPEN_RUN,
  type OpenRun,
  reasonOf,
} from './event-cancels.ts'
import { EVENT, recordEvents } from './event-waits.ts'
import { ORGANIZATION_FACTS } from './state.ts'

/**
 * Events that overtook a run: an event is compared with the runs that are committed when it is matched
 * (`event-cancels.ts`). A run of another transaction, which began before and commits later, or whose trigger's event was
 * matched later, is compared with them when it begins.
 */

/** The clocks of the hosts, which make the ids of events, differ by less. */
const SKEW = `interval '10 seconds'`
/** A transaction that queues runs takes less. What is raised later is matched after its commit. */
const COMMITTED = `interval '1 minute'`
/** The most events that a run is compared with. */
const MOST = 200
/** Time limit of their conditions, in milliseconds. */
const BUDGET_MS = 100

interface Overtaking extends OpenRun {
  event: EventAnswer
  org: Record<string, unknown>
  env: Record<string, unknown>
}

/**
 * For the first segment of a run with `cancel_on`, which holds its lock. @returns the reason of its cancellation;
 * undefined if no event that may have overtaken it cancels it.
 */
export async function overtakenBy(tx: Tenant, id: string): Promise<string | undefined> {
  const until = performance.now() + BUDGET_MS
  for (const { event, org, env, ...run } of await listOvertaking(tx, id)) {
    const { matches, problems } = await evaluate(tx, [run], { event, org, env })
    await noteProblems(tx, event, problems)
    if (matches.length > 0) return reasonOf(event)
    if (performance.now() > until) break
  }
  return undefined
}

/** Also events that are not matched yet: that they cancel the run twice is harmless. */
async function listOvertaking(tx: Tenant, id: string): Promise<Overtaking[]> {
  const { rows } = await tx.trx.raw<{ rows: Overtaking[] }>(
    `select ${EVENT} as event, ${ORGANIZATION_FACTS} as org, o.env, ${OPEN_RUN}
     from runs r join organizations o on o.id = r.organization_id
       join workflow_versions v on v.organization_id = r.organization_id and v.workflow_id = r.workflow_id
         and v.version = r.workflow_version
       join workflow_cancel_events c on c.organization_id = r.organization_id and c.workflow_id = r.workflow_id
       cross join lateral (
         select e.* from events e
         where e.organization_id = c.organization_id and e.name = c.event
           and (e.subject_id = r.record_id or not c.same_record)
           and e.id >= ${firstIdAt(`${BEGAN_AT} - ${SKEW}`)} and e.id < ${firstIdAt(`r.created_at + ${COMMITTED}`)}
           and ${IS_BEFORE} and r.id is distinct from e.cause
         order by e.id limit :most) e
     where r.organization_id = :organizationId and r.id = :id
     order by e.id limit :most`,
    { organizationId: tx.organizationId, id, most: MOST, recordEvents },
  )
  return rows
}
