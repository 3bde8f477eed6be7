import type { System } from '../../postgres/tenancy.ts'
import { WAKE } from './key-slots.ts'

/** Where the look through the keys goes on: after this organization, and in each after its own last key. */
export interface Places {
  organization: string
  keys: ReadonlyMap<string, string>
}

const FIRST = '00000000-0000-0000-0000-000000000000'
export const NOWHERE: Places = { organization: FIRST, keys: new Map() }

/** The organizations whose places are remembered; in others the look begins again. */
const MOST_PLACES = 10_000

/** SQL: whether the run `r` waits for a slot of its key. */
const WAITS = `r.status = 'queued' and r.hold = 'key'`

/**
 * Wakes the first runs of keys that have a free slot: the end of a run may have missed a run that began to wait at the
 * same time. Looks at `limit` keys, of the next organizations in turn with an equal part for each: one with very many
 * keys delays the others by no look. Each statement reads a bounded number of rows, whatever waits.
 * @returns the places for the next look.
 */
export async function wakeMissed(system: System, places: Places, limit: number): Promise<Places> {
  const organizations = await listWaiting(system, places.organization, limit)
  if (organizations.length === 0) return { ...places, organization: FIRST }
  const each = Math.floor(limit / organizations.length)
  const from = organizations.map((id) => ({ organization_id: id, key: places.keys.get(id) ?? FIRST }))
  const { rows } = await system.raw<{ rows: { organization_id: string; last: string; count: number }[] }>(
    `with recursive keys as (
       select p.organization_id, next.concurrency_key, 1 as n
       from jsonb_to_recordset(:from) as p(organization_id uuid, key uuid) cross join lateral (
         select r.concurrency_key from runs r
         where r.organization_id = p.organization_id and ${WAITS} and r.concurrency_key > p.key
         order by r.concurrency_key limit 1) next
       union all
       select k.organization_id, next.concurrency_key, k.n + 1 from keys k cross join lateral (
         select r.concurrency_key from runs r
         where r.organization_id = k.organization_id and ${WAITS} and r.concurrency_key > k.concurrency_key
         order by r.concurrency_key limit 1) next
       where k.n < :each
     ), free as materialized (
       select k.organization_id, k.concurrency_key from keys k cross join lateral (
         select cast(v.admission #>> '{concurrency,limit}' as integer) as most from runs r
           join workflow_versions v on v.organization_id = r.organization_id and v.workflow_id = r.workflow_id
             and v.version = r.workflow_version
         where r.organization_id = k.organization_id and r.concurrency_key = k.concurrency_key and ${WAITS}
         order by r.priority, r.id limit 1) first
       where (select count(*) from (select from runs r where r.organization_id = k.organization_id
           and r.concurrency_key = k.concurrency_key and r.hold is null and r.ended_at is null
           limit first.most) open) < first.most
     ), woken as (${WAKE('free k')})
     select organization_id, (array_agg(concurrency_key order by n desc))[1] as last, cast(count(*) as integer) as count
     from keys group by organization_id`,
    { from: JSON.stringify(from), each },
  )
  const keys = new Map(places.keys.size > MOST_PLACES ? [] : places.keys)
  for (const id of organizations) keys.delete(id)
  for (const { organization_id, last, count } of rows) if (count === each) keys.set(organization_id, last)
  return { organization: organizations.length < limit ? FIRST : organizations.at(-1)!, keys }
}

/**
 * SQL: the order of `runs_key_waiting`. By the organization alone, other indexes would do, which have all that is held.
 */
const BY_KEY = 'r.organization_id, r.concurrency_key'

/** The next organizations in which runs wait for keys, by a skip scan of `runs_key_waiting`. */
async function listWaiting(system: System, after: string, limit: number): Promise<string[]> {
  const { rows } = await system.raw<{ rows: { organization_id: string }[] }>(
    `with recursive organizations as (
       (select r.organization_id, 1 as n from runs r where ${WAITS} and r.organization_id > cast(:after as uuid)
        order by ${BY_KEY} limit 1)
       union all
       select next.organization_id, o.n + 1 from organizations o cross join lateral (
         select r.organization_id from runs r where ${WAITS} and r.organization_id > o.organization_id
         order by ${BY_KEY} limit 1) next
       where o.n < :limit
     )
     select organization_id from organizations order by n`,
    { after, limit },
  )
  return rows.map(({ organization_id }) => organization_id)
}
