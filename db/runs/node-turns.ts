import { setTimeout as sleep } from 'node:timers/promises'
import type { Tenant } from '../postgres/tenancy.ts'

/** A node of a run whose attempts have a `rate`. */
type NodeTurn = { workflow_id: string; node_id: string; run_id: string; path: string }
type Rate = { limit: number; per_ms: number }

/** `before`: the waiting calls before it, counted up to `MOST_WAITING_COUNTED`. `waitMs`: when to ask again. */
type Turn = { begun: true } | { begun: false; before: number; waitMs: number }

/** The calls waiting for a turn of a node that are counted at most. Above, the turn is at least so far away. */
export const MOST_WAITING_COUNTED = 10_000
/** Rows of one statement that looks at the front of the queue. */
const PAGE = 25
const MOST_PAGES = 200

/**
 * A call that is not among the next ones asks again when half of its time has passed, since those before it may have
 * been cancelled. An ask is an attempt of an activity, so a long queue asks less often: 10,000 waiting calls some 11
 * times a second together, instead of 33 times if each asked every 300 s.
 */
const ASKS_AGAIN_MS = 300_000
const ASKS_AGAIN_PER_CALL_MS = 300
const LEAST_WAIT_MS = 1_000
/** While a call before it is about to begin. */
const MOMENT_MS = 100
/** How often an attempt looks whether another one, which begins in this moment, is done. */
const LOOKS = 5

/** SQL: the turns of the node. */
const OF_NODE = 'organization_id = :organizationId and workflow_id = :workflow_id and node_id = :node_id'

/**
 * SQL: whether the turn `t` still waits: its node runs, and its run is not paused. The statuses are not in the
 * conditions, so that the rows are found by their keys: a planner without statistics takes the index of a status.
 */
const WAITS = `coalesce(
  (select r.status = 'running' and r.pause_requested_at is null from runs r
   where r.organization_id = t.organization_id and r.id = t.run_id)
  and (select n.status = 'running' from run_nodes n
   where n.organization_id = t.organization_id and n.run_id = t.run_id and n.path = t.path and n.node_id = t.node_id),
  false)`

/** SQL: the number of the last call that began. */
const LAST = `last as (select coalesce(max(turn), 0) as last from node_turns where ${OF_NODE} and turn is not null)`

/** SQL: the time in ms until the call with the number `turn` has left the window. */
const leavesIn = (turn: string) => `
  (select extract(epoch from begun_at - clock_timestamp()) * 1000 + :per_ms
   from node_turns where ${OF_NODE} and turn = ${turn})::double precision`

/**
 * Begins an attempt of a node if fewer than `limit` attempts of it, in any run of the workflow, began within the last
 * `per_ms`, and none of those that came before still waits for that turn. Otherwise the attempt keeps its place, until it
 * asks again.
 *
 * Calls that begin are numbered, so that the window is one look-up: a call may begin once the one `limit` before it has
 * left the window. Only a call whose time has come takes the lock of the node, and it holds a connection, so it does not
 * wait for the lock for long.
 */
export async function takeNodeTurn(
  tx: Tenant,
  { workflow_id, node_id, run_id, path }: NodeTurn,
  { limit, per_ms }: Rate,
): Promise<Turn> {
  const key = { organizationId: tx.organizationId, workflow_id, node_id, run_id, path, limit, per_ms }
  const own = { ...key, n: await keepPlace(tx, key) }
  await passOver(tx, own)
  const { before, free_in_ms } = await positionOf(tx, own)
  if (before < limit && (free_in_ms === null || free_in_ms <= 0)) {
    if (await begin(tx, own)) return { begun: true }
    return { begun: false, before, waitMs: Math.ceil(MOMENT_MS * (1 + Math.random())) }
  }
  // Without one, calls before it have their turn, and have not begun yet.
  const due = Math.max(free_in_ms ?? 0, MOMENT_MS) + Math.floor(before / limit) * per_ms
  const rarely = Math.max(ASKS_AGAIN_MS, before * ASKS_AGAIN_PER_CALL_MS)
  const waitMs = before < limit ? free_in_ms! : Math.min(Math.max(due / 2, LEAST_WAIT_MS), due, rarely)
  return { begun: false, before, waitMs: Math.max(before > 0 ? MOMENT_MS : 1, Math.ceil(waitMs)) }
}

type Key = NodeTurn & Rate & { organizationId: string }
/** `n`: its place in the queue of the node. */
type Own = Key & { n: string }

/** @returns the place of the call in the queue of its node, the same until it begins. */
async function keepPlace({ trx }: Tenant, key: Key): Promise<string> {
  const { rows } = await trx.raw<{ rows: { n: string }[] }>(
    `insert into node_turns (organization_id, workflow_id, node_id, run_id, path)
     values (:organizationId, :workflow_id, :node_id, :run_id, :path)
     on conflict (organization_id, run_id, path, node_id) where turn is null do update set passed_over = false
     returning n`,
    key,
  )
  return rows[0]!.n
}

/** Marks the calls at the front of the queue that no longer wait, so that nobody counts them again. */
async function passOver({ trx }: Tenant, own: Own): Promise<void> {
  for (let pages = 1; pages <= MOST_PAGES; pages++) {
    const { rows } = await trx.raw<{ rows: { n: string; waits: boolean }[] }>(
      `select n, ${WAITS} as waits from (
         select * from node_turns
         where ${OF_NODE} and turn is null and not passed_over and n < :n order by n limit ${PAGE}) t`,
      own,
    )
    const gone = rows.filter(({ waits }) => !waits).map(({ n }) => n)
    if (gone.length > 0)
      await trx.raw(
        `update node_turns set passed_over = true where ${OF_NODE} and turn is null and n = any(:gone::bigint[])`,
        { ...own, gone },
      )
    if (gone.length < PAGE) return
  }
}

/**
 * The waiting calls before it, and when the place within the window that it gets is free: null if nothing holds the
 * place.
 */
async function positionOf({ trx }: Tenant, own: Own): Promise<{ before: number; free_in_ms: number | null }> {
  const { rows } = await trx.raw<{ rows: { before: number; free_in_ms: number | null }[] }>(
    `with waiting as (
       select count(*)::integer as before from (
         select from node_turns
         where ${OF_NODE} and turn is null and not passed_over and n < :n limit ${MOST_WAITING_COUNTED}) counted
     ), ${LAST}
     select before, ${leavesIn('last + 1 + before % :limit - :limit')} as free_in_ms from waiting, last`,
    own,
  )
  return rows[0]!
}

/** Begins the call unless others took the place meanwhile. */
async function begin({ trx }: Tenant, own: Own): Promise<boolean> {
  for (let look = 1; ; look++) {
    const { rows } = await trx.raw<{ rows: { locked: boolean }[] }>(
      `select pg_try_advisory_xact_lock(hashtextextended(
         'node turns ' || :organizationId::text || :workflow_id::text || :node_id::text, 0)) as locked`,
      own,
    )
    if (rows[0]!.locked) break
    if (look === LOOKS) return false
    await sleep(look * 2)
  }
  const { rows } = await trx.raw<{ rows: { turn: string }[] }>(
    `with ${LAST}
     update node_turns set turn = last + 1, begun_at = clock_timestamp() from last
     where ${OF_NODE} and n = :n and turn is null and coalesce(${leavesIn('last + 1 - :limit')} <= 0, true)
     returning turn`,
    own,
  )
  if (!rows[0]) return false
  await trx.raw(
    `delete from node_turns
     where ${OF_NODE} and turn <= :turn::bigint - :limit
       and begun_at <= clock_timestamp() - :per_ms * interval '1 millisecond'`,
    { ...own, turn: rows[0].turn },
  )
  return true
}
