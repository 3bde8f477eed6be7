import type { Knex } from 'knex'
import { evaluateWhen } from '../../workflows/interpret/when.ts'
import type { Scope } from '../../workflows/language/expressions/liquid.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import type { EventAnswer } from '../../workflows/nodes/wait-for.ts'
import { RECORD_EVENTS } from '../../workflows/shared/events.ts'
import { TRIGGER_WHEN } from '../../workflows/shared/limits.ts'
import { createTurns } from '../../workflows/shared/turns.ts'
import { EVENTS_BY_KEY, keysOf } from '../events/by-key.ts'
import { CHANGED_FIELDS, EVENT_TIME } from '../events/outbox.ts'
import { BUDGET_MS } from '../model/events/conditions.ts'
import type { EventKey } from '../model/events/event.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { firstIdAt } from '../retention/purge.ts'
import { TIMEZONE } from './state.ts'
import { IS_SINCE, WAIT_KEY, type WaitKey } from './waits.ts'

/**
 * Maximum number of waits that are compared with the events of one batch. If there are more, each wait is compared on
 * its own (`lookBack`).
 */
const MAX_PAIRS = 1_000

/** SQL: whether the wait `w` is open, and waits for the name and the record of the event `e`. */
const namesOf = (
  e: string,
) => `w.organization_id = ${e}.organization_id and w.type = 'event' and w.answered_at is null
  and w.topics && array[${e}.name, ${e}.name || ':' || coalesce(cast(${e}.subject_id as text), '')]`

/** SQL: whether any node waits for an event with the name and record of `e`. */
export const isAwaited = (e: string): string => `exists (select from run_waits w where ${namesOf(e)})`

/**
 * SQL: whether the event `e` may answer the wait `w`, apart from its filter. An event in the transaction that started
 * the run is found by `lookBack` (`IS_SINCE`): it was committed before the wait.
 */
const MATCHES = `${namesOf('e')} and w.since < e.created_at`

/** SQL: the event `e` as a node reads it. `:recordEvents`: the names of events whose data is a record. */
export const EVENT = `jsonb_build_object('id', e.id, 'name', e.name,
  'created_at', ${EVENT_TIME},
  'record', case when e.name = any(cast(:recordEvents as text[])) then e.data end,
  'data', case when e.name = any(cast(:recordEvents as text[])) then null else e.data end, 'previous', e.previous, 'changed', ${CHANGED_FIELDS})`
export const recordEvents = [...RECORD_EVENTS]

interface Pair extends WaitKey {
  event_id: string
  filter: string | null
  values: Scope | null
  /** The time zone that the organization has now, in which the filter reads days. */
  timezone: string | null
}

/** SQL: `timezone` of the wait `w`; null without a filter, which alone reads it. */
const ZONE = `case when w.filter is not null
  then (select ${TIMEZONE} from organizations o where o.id = w.organization_id) end`

/**
 * Answers the waits for these events, in the order of the events: the first matching event answers a wait. A filter
 * that cannot be rendered is a problem of its wait alone. @returns the number of answered waits, and whether others are
 * due.
 */
export async function answerEventWaits(
  trx: Knex,
  events: EventKey[],
): Promise<{ answered: number; due: boolean }> {
  if (events.length === 0) return { answered: 0, due: false }
  const keys = keysOf(events)
  const pairs = await listPairs(trx, keys)
  if (pairs.length > MAX_PAIRS) return { answered: 0, due: await markDue(trx, keys) }
  const scopes = await loadEvents(trx, pairs)
  const turn = createTurns()
  const answers = new Map<string, Pair>()
  const until = performance.now() + BUDGET_MS
  let due = false
  for (const pair of pairs) {
    if (answers.has(pair.id)) continue
    await turn()
    if (performance.now() > until) {
      due = await markDue(trx, keys)
      break
    }
    const holds = holdsFor(pair, scopes.get(pair.event_id))
    if (holds instanceof NodeError) await noteProblem(trx, pair, pair.event_id, holds)
    else if (holds) answers.set(pair.id, pair)
  }
  return { answered: await answer(trx, [...answers.values()]), due }
}

type Keys = ReturnType<typeof keysOf>

async function listPairs(trx: Knex, keys: Keys): Promise<Pair[]> {
  const { rows } = await trx.raw<{ rows: Pair[] }>(
    `select ${prefixed('w', WAIT_KEY)}, w.filter, w.settings -> 'values' as values, ${ZONE} as timezone, e.id as event_id
     from ${EVENTS_BY_KEY} join run_waits w on ${MATCHES}
     limit ${MAX_PAIRS + 1}`,
    { ...keys },
  )
  return rows.sort((a, b) => (a.event_id < b.event_id ? -1 : a.event_id > b.event_id ? 1 : 0))
}

/** Leaves the waits for these events to `lookBack`. */
async function markDue(trx: Knex, keys: Keys): Promise<boolean> {
  await trx.raw(`update run_waits w set due_at = now() from ${EVENTS_BY_KEY} where ${MATCHES}`, { ...keys })
  return true
}

async function loadEvents(trx: Knex, pairs: Pair[]): Promise<Map<string, EventAnswer>> {
  const filtered = pairs.filter(({ filter }) => filter !== null)
  const wanted = [...new Map(filtered.map((pair) => [pair.event_id, pair])).values()]
  if (wanted.length === 0) return new Map()
  const { rows } = await trx.raw<{ rows: { event: EventAnswer }[] }>(
    `select ${EVENT} as event from ${EVENTS_BY_KEY}`,
    { ...keysOf(wanted), recordEvents },
  )
  return new Map(rows.map(({ event }) => [event.id, event]))
}

function holdsFor(
  { filter, values, timezone }: Pick<Pair, 'filter' | 'values' | 'timezone'>,
  event: EventAnswer | undefined,
): boolean | NodeError {
  if (filter === null) return true
  // As the `when` of a trigger and of `cancel_on`, also for waits that were stored with another time zone, or none.
  const org = { ...(values?.org as Scope | undefined), timezone }
  return event !== undefined && evaluateWhen(filter, { ...values, org, event }, TRIGGER_WHEN)
}

async function noteProblem(trx: Knex, wait: WaitKey, eventId: string, error: NodeError): Promise<void> {
  const problem = { message: `when: ${error.message}`, event_id: eventId, at: new Date().toISOString() }
  await trx('run_waits')
    .where({
      organization_id: wait.organization_id,
      run_id: wait.run_id,
      path: wait.path,
      node_id: wait.node_id,
    })
    .andWhere({ id: wait.id, answered_at: null })
    .update({ problem: JSON.stringify(problem) })
}

/** The data of the events does not leave the database. @returns the number of answered waits. */
async function answer(trx: Knex, answers: (WaitKey & { event_id: string })[]): Promise<number> {
  if (answers.length === 0) return 0
  const rows = answers.map(({ organization_id, run_id, path, node_id, id, event_id }) => ({
    organization_id,
    run_id,
    path,
    node_id,
    id,
    event_id,
  }))
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `update run_waits w set answer = ${EVENT}, answered_at = now(), due_at = null, lease_until = null, notified_at = null
     from jsonb_to_recordset(:answers) as a(organization_id uuid, run_id uuid, path text, node_id text, id uuid,
       event_id uuid)
     join events e on e.organization_id = a.organization_id and e.id = a.event_id
     where w.organization_id = a.organization_id and w.run_id = a.run_id and w.path = a.path and w.node_id = a.node_id
       and w.id = a.id and w.answered_at is null`,
    { answers: JSON.stringify(rows), recordEvents },
  )
  return rowCount
}

/** Number of events that one page of `lookBack` compares. */
const PAGE = 200
/** Time limit of one `lookBack`, in milliseconds. The wait is due again for the rest. */
const LOOK_BACK_MS = 100

/**
 * Compares a wait with the events after its `since`: once after its insertion, and again if a batch had more waits than
 * it could compare. Event ids are in the order of time only approximately, because of clock differences and long
 * transactions; hence the margins.
 */
export async function lookBack(tx: Tenant, key: WaitKey): Promise<void> {
  const { trx, organizationId } = tx
  const bindings = { organizationId, runId: key.run_id, path: key.path, nodeId: key.node_id, id: key.id }
  const { rows } = await trx.raw<{
    rows: (Pair & { names: string[]; subject_id: string | null; after: string })[]
  }>(
    `select ${WAIT_KEY}, filter, settings -> 'values' as values, ${ZONE} as timezone, subject_id,
       array(select split_part(topic, ':', 1) from unnest(topics) as topic) as names,
       greatest(checked_id, ${firstIdAt("since - interval '5 minutes'")}) as after
     from run_waits w ${WHERE_KEY} and answered_at is null for no key update of w`,
    bindings,
  )
  const wait = rows[0]
  if (!wait) return
  const turn = createTurns()
  const until = performance.now() + LOOK_BACK_MS
  for (let after = wait.after; ; ) {
    const page = await listEarlier(trx, wait, after)
    for (const { event, counts } of page) {
      after = event.id
      if (!counts) continue
      await turn()
      const holds = holdsFor(wait, event)
      if (holds instanceof NodeError) await noteProblem(trx, wait, event.id, holds)
      else if (holds) {
        await answer(trx, [{ ...wait, event_id: event.id }])
        tx.wake('agx_waits')
        return
      }
    }
    const more = page.length === PAGE
    if (more && performance.now() < until) continue
    await trx.raw(
      `update run_waits set lease_until = null, due_at = case when :more then now() end,
         checked_id = case when :more then cast(:after as uuid)
           else greatest(checked_id, ${firstIdAt("now() - interval '10 minutes'")}) end
       ${WHERE_KEY}`,
      { ...bindings, more, after },
    )
    if (more) tx.wake('agx_due_waits')
    return
  }
}

const WHERE_KEY = `where organization_id = :organizationId and run_id = :runId and path = :path and node_id = :nodeId
  and id = :id`

/** The next events with the names of a wait. `counts` is false for events before its `since`. */
async function listEarlier(
  trx: Knex,
  wait: WaitKey & { names: string[]; subject_id: string | null },
  after: string,
): Promise<{ event: EventAnswer; counts: boolean }[]> {
  const { rows } = await trx.raw<{ rows: { event: EventAnswer; counts: boolean }[] }>(
    `select ${EVENT} as event, ${IS_SINCE} as counts
     from (
       select k.id from unnest(cast(:names as text[])) as n(name) cross join lateral (
         select e.id from events e
         where e.organization_id = :organizationId and e.name = n.name and e.id > :after
           and (cast(:subjectId as uuid) is null or e.subject_id = :subjectId)
         order by e.id limit ${PAGE}) k
       order by k.id limit ${PAGE}) k
     join events e on e.organization_id = :organizationId and e.id = k.id
     join run_waits w on w.organization_id = :organizationId and w.run_id = :runId and w.path = :path
       and w.node_id = :nodeId
     join runs r on r.organization_id = w.organization_id and r.id = w.run_id
     order by e.id`,
    {
      organizationId: wait.organization_id,
      runId: wait.run_id,
      path: wait.path,
      nodeId: wait.node_id,
      names: wait.names,
      subjectId: wait.subject_id,
      after,
      recordEvents,
    },
  )
  return rows
}

const prefixed = (alias: string, columns: string) =>
  columns
    .split(', ')
    .map((column) => `${alias}.${column}`)
    .join(', ')
