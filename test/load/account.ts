import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../db/postgres/connect.ts'
import type { Acknowledged, Ledger } from './ledger.ts'
import type { Outside } from './outside.ts'
import { MANY_CALLS, SUBSCRIBED } from './target.ts'

/** A condition that must hold for each of `of` rows; `wrong` describes the rows that violate it. */
export interface Check {
  name: string
  of: number
  wrong: string[]
}

export interface Accounted {
  checks: Check[]
  /** Calls of runs, and deliveries, that arrived more than once. */
  repeatedCalls: number
  repeatedDeliveries: number
}

export interface AccountOptions {
  db: Database
  ledger: Ledger
  outside: Pick<Outside, 'calls' | 'deliveries'>
}

/** Work that has not ended. */
export interface Open {
  runs: number
  deliveries: number
  /** Events of the outbox that the relay has not matched with endpoints. */
  events: number
}

/**
 * Waits until all runs and deliveries have ended and the outbox is empty. @returns false if the time is over before.
 */
export async function drained(db: Database, milliseconds: number): Promise<boolean> {
  for (const until = Date.now() + milliseconds; Date.now() < until; await pause(500)) {
    const open = await countOpen(db).catch(() => undefined)
    if (open && open.runs + open.deliveries + open.events === 0) return true
  }
  return false
}

/** Waits until the runs have ended, while others may begin. @returns false if the time is over before. */
export async function haveEnded(db: Database, runs: string[], milliseconds: number): Promise<boolean> {
  for (const until = Date.now() + milliseconds; Date.now() < until; await pause(500)) {
    const open = db.system('runs').whereRaw('id = any(?)', [runs]).whereIn('status', ['queued', 'running'])
    if (!(await open.first('id'))) return true
  }
  return false
}

export async function countOpen(db: Database): Promise<Open> {
  const { rows } = await db.system.raw<{ rows: [Open] }>(
    `select cast((select count(*) from runs where status in ('queued', 'running')) as integer) as runs,
       cast((select count(*) from deliveries where status in ('held', 'queued', 'delivering')) as integer) as deliveries,
       cast((select count(*) from events where matched_at is null) as integer) as events`,
  )
  return rows[0]
}

/**
 * Compares the acknowledged requests with the rows. Effects on own data must exist exactly once, external ones at least
 * once with one idempotency key, and every run, delivery and event must have ended. Call it when all has `drained`.
 */
export async function account({ db, ledger, outside }: AccountOptions): Promise<Accounted> {
  const idsOf = (all: Acknowledged[]) => all.map(({ id }) => id)
  /** The rows of `sql` violate the check; their column `wrong` describes them. */
  const check = async (name: string, of: number, sql: string, ids: string[] = []): Promise<Check> => {
    const bindings = sql.includes('?') ? [ids] : []
    const { rows } = await db.system.raw<{ rows: { wrong: string }[] }>(sql, bindings)
    return { name, of, wrong: rows.map(({ wrong }) => wrong) }
  }
  const count = async (from: string) => {
    const { rows } = await db.system.raw<{ rows: { count: number }[] }>(`select count(*) as count ${from}`)
    return Number(rows[0]!.count)
  }
  const runs = idsOf(ledger.runs)
  const received = idsOf(ledger.received)
  const cancelled = idsOf(ledger.cancelled)
  const signalled = idsOf(ledger.signalled)
  const answered = idsOf(ledger.answered)
  const contacts = [...idsOf(ledger.contacts), ...received]
  const checks = [
    await check('acknowledged contacts exist', contacts.length, missing('contacts'), contacts),
    await check('acknowledged runs completed', runs.length, notEndedAs('completed'), runs),
    await check(
      'acknowledged cancellations ended their run',
      cancelled.length,
      notEndedAs('cancelled'),
      cancelled,
    ),
    await check(
      'acknowledged signals completed their run',
      signalled.length,
      notEndedAs('completed'),
      signalled,
    ),
    await check('acknowledged answers completed their run', answered.length, unanswered, answered),
    await check('incoming webhooks started one run', received.length, RUNS_OF_RECORDS, received),
    await check('all runs ended', await count('from runs'), UNENDED_RUNS),
    await check('ended runs have no open node', await count('from run_nodes'), OPEN_NODES),
    await check('effects of runs happened exactly once', await count(LOAD_RUNS), EFFECTS),
    await check('events were matched once per webhook', await count('from events'), EVENTS),
    await check('all deliveries succeeded', await count('from deliveries'), DELIVERIES),
    await check('succeeded deliveries are in the log of attempts', await count('from deliveries'), UNLOGGED),
    await callsOf(db, outside),
    await check(
      'acknowledged runs of many calls completed',
      ledger.manyCalls.length,
      notEndedAs('completed'),
      idsOf(ledger.manyCalls),
    ),
    manyCallsOf(ledger, outside),
    await check(
      'runs of a backlog were started once',
      ledger.backlog.length,
      NOT_ONCE,
      idsOf(ledger.backlog),
    ),
    await arrivalsOf(db, outside),
  ]
  if (ledger.abandoned.length === 0 && !ledger.forgetful) {
    checks.push(await idsOfArrivals(db, outside))
    const requested = ledger.runs.length
    const found = await count(`${LOAD_RUNS} and trigger ->> 'type' <> 'webhook'`)
    checks.push(equal('repeated requests started no second run', requested, found))
    const created = await count(`from contacts where email like '%.example'`)
    checks.push(equal('repeated requests created no second contact', contacts.length, created))
  }
  checks.push({ name: 'requests were acknowledged', of: 0, wrong: abandonedOf(ledger) })
  const more = (all: Iterable<number>) => [...all].filter((times) => times > 1).length
  return {
    checks,
    repeatedCalls: more([...outside.calls.values()].map((keys) => keys.length)),
    repeatedDeliveries: more(outside.deliveries.values()),
  }
}

const equal = (name: string, expected: number, found: number): Check => ({
  name,
  of: expected,
  wrong: found === expected ? [] : [`found ${found}`],
})

/** After a restore, the database rightly refuses requests about a run that it has lost. */
const abandonedOf = ({ abandoned, forgetful }: Ledger) =>
  abandoned.filter((error) => !(forgetful && /runs\/\S+: 404/.test(error)))

const LOAD_RUNS = `from runs where workflow_name = 'Load'`

const missing = (table: string) => `
  select id::text as wrong from unnest(cast(? as uuid[])) as s(id)
  where not exists (select from ${table} t where t.id = s.id)`

const notEndedAs = (status: string) => `
  select s.id || ' ' || coalesce(r.status || ' ' || coalesce(r.error ->> 'code', ''), 'does not exist') as wrong
  from unnest(cast(? as uuid[])) as s(id) left join runs r on r.id = s.id
  where r.status is distinct from '${status}'`

const NOT_ONCE = `
  select s.id || ' ' || coalesce(r.status, 'does not exist') || ' by ' || w.count || ' workflows' as wrong
  from unnest(cast(? as uuid[])) as s(id) left join runs r on r.id = s.id cross join lateral (
    select count(distinct temporal_run_id) from run_segments g where g.run_id = s.id) w
  where r.status is distinct from 'completed' or w.count <> 1`

const unanswered = `
  select s.id || ' ' || coalesce(r.status || ' ' || coalesce(r.outputs ->> 'decision', ''), 'does not exist') as wrong
  from unnest(cast(? as uuid[])) as s(id) left join runs r on r.id = s.id
  where r.status is distinct from 'completed' or r.outputs ->> 'decision' is distinct from 'approved'`

const RUNS_OF_RECORDS = `
  select s.id || ': ' || count(r.id) || ' runs' as wrong
  from unnest(cast(? as uuid[])) as s(id) left join runs r on r.record_id = s.id and r.status = 'completed'
  group by s.id having count(r.id) <> 1`

const UNENDED_RUNS = `
  select id || ' ' || status || ' ' || coalesce(error ->> 'message', stuck_reason, '') as wrong
  from runs where status not in ('completed', 'cancelled')`

const OPEN_NODES = `
  select n.run_id || ' ' || n.node_id || ' ' || n.status as wrong
  from run_nodes n join runs r on r.organization_id = n.organization_id and r.id = n.run_id
  where n.status in ('running', 'waiting') and r.status not in ('queued', 'running')`

/** A run that did not complete has each effect at most once. */
const EFFECTS = `
  select r.id || ' ' || r.status || ': ' || coalesce(e.before, 0) || ' before, ' || coalesce(e.after, 0) || ' after' as wrong
  from runs r left join (
    select last_name, count(*) filter (where first_name = 'before') as before,
      count(*) filter (where first_name = 'after') as after
    from contacts where first_name in ('before', 'after') group by last_name) e on e.last_name = r.id::text
  where r.workflow_name = 'Load' and (e.before > 1 or e.after > 1
    or (r.status = 'completed' and (e.before, e.after) is distinct from (bigint '1', bigint '1')))`

const EVENTS = `
  select e.id || ' ' || e.name || ': ' || count(d.id) || ' deliveries' as wrong
  from events e left join deliveries d on d.organization_id = e.organization_id and d.event_id = e.id
  group by e.organization_id, e.id, e.name, e.matched_at
  having e.matched_at is null
    or count(d.id) <> case when e.name in (${SUBSCRIBED.map((name) => `'${name}'`).join(', ')}) then 1 else 0 end`

const UNLOGGED = `
  select d.id::text as wrong from deliveries d where d.status = 'succeeded' and not exists (
    select from delivery_attempts a
    where a.organization_id = d.organization_id and a.delivery_id = d.id and a.status = 'succeeded')`
const DELIVERIES = `
  select id || ' ' || status || ' ' || coalesce(error, '') as wrong from deliveries where status <> 'succeeded'`

/** Each completed run made its call, and repeated it only with the same idempotency key. */
async function callsOf(db: Database, { calls }: Pick<Outside, 'calls'>): Promise<Check> {
  const { rows } = await db.system.raw<{ rows: { id: string }[] }>(
    `select id ${LOAD_RUNS} and status = 'completed'`,
  )
  const wrong = rows.flatMap(({ id }) => {
    const keys = calls.get(id) ?? []
    return new Set(keys).size === 1
      ? []
      : [`${id}: ${keys.length} calls, keys ${[...new Set(keys)].join(', ')}`]
  })
  return { name: 'completed runs made their call with one idempotency key', of: rows.length, wrong }
}

/** Each run of many calls made all of them, and repeated them only with the same idempotency key. */
function manyCallsOf({ manyCalls }: Ledger, { calls }: Pick<Outside, 'calls'>): Check {
  const made = new Map<string, string[]>()
  for (const [run, keys] of calls) {
    const [id] = run.split(' ') as [string]
    if (id !== run) made.set(id, [...(made.get(id) ?? []), ...new Set(keys)])
  }
  const wrong = manyCalls.flatMap(({ id }) => {
    const keys = made.get(id) ?? []
    const different = new Set(keys).size
    return keys.length === MANY_CALLS && different === MANY_CALLS
      ? []
      : [`${id}: ${keys.length} of ${MANY_CALLS} calls, ${different} keys`]
  })
  return {
    name: 'each of many calls was made with one idempotency key',
    of: manyCalls.length * MANY_CALLS,
    wrong,
  }
}

async function arrivalsOf(db: Database, { deliveries }: Pick<Outside, 'deliveries'>): Promise<Check> {
  const ids = await webhookIds(db, `status = 'succeeded'`)
  return {
    name: 'succeeded deliveries arrived',
    of: ids.length,
    wrong: ids.filter((id) => !deliveries.has(id)),
  }
}

async function idsOfArrivals(db: Database, { deliveries }: Pick<Outside, 'deliveries'>): Promise<Check> {
  const known = new Set(await webhookIds(db, 'true'))
  const wrong = [...deliveries.keys()].filter((id) => !known.has(id))
  return { name: 'what arrived has the id of a delivery', of: deliveries.size, wrong }
}

async function webhookIds(db: Database, condition: string): Promise<string[]> {
  const { rows } = await db.system.raw<{ rows: { id: string }[] }>(
    `select 'msg_' || event_id || '_' || webhook_id as id from deliveries where ${condition}`,
  )
  return rows.map(({ id }) => id)
}

/** One line per check: the count, and examples of violations. */
export const linesOf = ({ checks, repeatedCalls, repeatedDeliveries }: Accounted): string[] => [
  ...checks.map(({ name, of, wrong }) => {
    if (wrong.length === 0) return `  ok     ${name}: ${of}`
    const more = wrong.length > EXAMPLES ? `, and ${wrong.length - EXAMPLES} more` : ''
    return `  WRONG  ${name}: ${wrong.length} of ${of}: ${wrong.slice(0, EXAMPLES).join('; ')}${more}`
  }),
  `  calls made more than once: ${repeatedCalls}; deliveries that arrived more than once: ${repeatedDeliveries}`,
]

const EXAMPLES = 5

export const isComplete = ({ checks }: Accounted): boolean => checks.every(({ wrong }) => wrong.length === 0)
