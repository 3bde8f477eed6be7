import type { RunError } from '../../../workflows/interpret/run-state.ts'
import type { Admission } from '../../../workflows/language/definition.ts'
import type { RunKeys } from '../../model/runs/run-keys.ts'
import type { System, Tenant } from '../../postgres/tenancy.ts'
import { ORGANIZATION_FACTS } from '../state.ts'

/**
 * Runs that are held back by a key of their workflow's settings (`debounce`, `rate`, `concurrency`), or by the run that
 * has the key of their start: queued rows with a `hold`, which claims do not read. So they survive whatever starts them,
 * and a backlog of 20,000 costs others nothing. A relay looks at a row when its `hold_until` has passed, for one
 * organization in one transaction: see admit.ts.
 */
export const HOLDS = ['admission', 'predecessor', 'debounce', 'rate', 'key'] as const
export type Hold = (typeof HOLDS)[number]

/** A held run that is due. Times are milliseconds since 1970. */
export interface HeldRun {
  id: string
  workflow_id: string
  workflow_name: string
  hold: Hold
  priority: number
  created: number
  retry_of: string | null
  /** Whether the run is open whose end it waits for. */
  follows_open: boolean
  trigger: Record<string, unknown>
  inputs: Record<string, unknown>
  /** Null after a migration to a version without such settings. */
  admission: Admission | null
  keys: RunKeys | null
  concurrency_key: string | null
  debounce_key: string | null
  rate_key: string | null
  debounced_from: number | null
  org: Record<string, unknown>
  env: Record<string, unknown>
}

/** What becomes of a held run. `until`: milliseconds since 1970, or Infinity. */
export type Outcome =
  | { kind: 'release' }
  | { kind: 'hold'; hold: Exclude<Hold, 'admission'>; until: number }
  | { kind: 'skip'; code: string; reason: string }
  | { kind: 'cancel'; reason: string }
  | { kind: 'fail'; error: RunError }

/** SQL: whether the run `r` is held. The condition of the partial index `runs_held`. */
const IS_HELD = `r.status = 'queued' and r.hold is not null`

/** Up to `limit` organizations that have due held runs, those with the oldest first. */
export async function listDue(system: System, limit: number): Promise<string[]> {
  const { rows } = await system.raw<{ rows: { organization_id: string }[] }>(
    // A skip scan of the partial index: the runs of one organization are not read to find the next.
    `with recursive organizations as (
       (select r.organization_id from runs r where ${IS_HELD} order by r.organization_id limit 1)
       union all
       select next.* from organizations o cross join lateral (
         select r.organization_id from runs r where ${IS_HELD} and r.organization_id > o.organization_id
         order by r.organization_id limit 1) next
     )
     select o.organization_id from organizations o cross join lateral (
       select r.hold_until from runs r where r.organization_id = o.organization_id and ${IS_HELD}
       order by r.hold_until limit 1) first
     where first.hold_until <= now() order by first.hold_until limit ?`,
    [limit],
  )
  return rows.map(({ organization_id }) => organization_id)
}

/**
 * Locks the next due held runs of the organization, the earliest first. @returns undefined while another relay decides
 * about runs of the organization. A locked row is left for the next time.
 */
export async function lockDue(
  tx: Tenant,
  limit: number,
): Promise<{ runs: HeldRun[]; now: number } | undefined> {
  const { organizationId } = tx
  // In a statement of its own: the next one must see what the holder before has committed.
  const { rows: locks } = await tx.trx.raw<{ rows: { locked: boolean; now: number }[] }>(
    `select pg_try_advisory_xact_lock(hashtextextended('agx held runs ' || cast(? as text), 0)) as locked,
       cast(extract(epoch from now()) * 1000 as double precision) as now`,
    [organizationId],
  )
  if (!locks[0]!.locked) return undefined
  const { rows: runs } = await tx.trx.raw<{ rows: HeldRun[] }>(
    `select r.id, r.workflow_id, r.workflow_name, case r.hold when 'predecessor' then 'admission' else r.hold end as hold,
       r.follows is not null and exists (select from runs p where p.organization_id = r.organization_id
         and p.id = r.follows and p.ended_at is null) as follows_open, r.priority, ${milliseconds('r.created_at')} as created,
       r.retry_of, r.trigger, r.inputs, v.admission, r.keys, r.concurrency_key, r.debounce_key, r.rate_key,
       ${milliseconds('r.debounced_from')} as debounced_from, ${ORGANIZATION_FACTS} as org, o.env
     from runs r join organizations o on o.id = r.organization_id
       join workflow_versions v on v.organization_id = r.organization_id and v.workflow_id = r.workflow_id
         and v.version = r.workflow_version
     where r.organization_id = :organizationId and ${IS_HELD} and r.hold_until <= now()
     order by r.hold_until, r.id limit :limit
     for no key update of r skip locked`,
    { organizationId, limit },
  )
  return { runs, now: locks[0]!.now }
}

/** Lets the next due run of the organization wait for a minute. */
export async function postponeFirst({ trx, organizationId }: Tenant): Promise<void> {
  await trx.raw(
    `update runs set hold_until = now() + interval '1 minute' where organization_id = :organizationId and id = (
       select r.id from runs r where r.organization_id = :organizationId and ${IS_HELD} and r.hold_until <= now()
       order by r.hold_until, r.id limit 1)`,
    { organizationId },
  )
}

/** SQL: a time as milliseconds since 1970. */
export const milliseconds = (time: string) => `cast(extract(epoch from ${time}) * 1000 as double precision)`
