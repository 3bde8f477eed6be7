import type { Tenant } from '../postgres/tenancy.ts'

/** A node of a run whose attempts have a `rate`. */
interface NodeTurn {
  workflow_id: string
  node_id: string
  run_id: string
  path: string
}

/** `before`: the waiting calls before it. `waitMs`: when to ask again. */
type Turn = { begun: true } | { begun: false; before: number; waitMs: number }

/** A call that is not the next one asks again at least so often: those before it may have been cancelled. */
const ASKS_AGAIN_MS = 300_000
const LEAST_WAIT_MS = 1_000
/** While a call before it is about to begin. */
const MOMENT_MS = 100

/** SQL: whether the turn `t` still waits: its node runs, and its run is not paused. */
const WAITS = `exists (
  select from run_nodes n join runs r on r.organization_id = n.organization_id and r.id = n.run_id
  where n.organization_id = t.organization_id and n.run_id = t.run_id and n.path = t.path and n.node_id = t.node_id
    and n.status = 'running' and r.status = 'running' and r.pause_requested_at is null)`

/**
 * Begins an attempt of a node if fewer than `limit` attempts of it, in any run of the workflow, began within the last
 * `per_ms`, and none of those that came before still waits for that turn. Otherwise the attempt keeps its place, until it
 * asks again. Serialises the attempts of the node until the transaction ends.
 */
export async function takeNodeTurn(
  tx: Tenant,
  { workflow_id, node_id, run_id, path }: NodeTurn,
  { limit, per_ms }: { limit: number; per_ms: number },
): Promise<Turn> {
  const key = { organizationId: tx.organizationId, workflow_id, node_id, run_id, path, limit, per_ms }
  await tx.trx.raw(
    `select pg_advisory_xact_lock(hashtextextended(
       'node turns ' || :organizationId::text || :workflow_id::text || :node_id::text, 0))`,
    key,
  )
  await tx.trx.raw(
    `delete from node_turns t
     where organization_id = :organizationId and workflow_id = :workflow_id and node_id = :node_id
       and begun_at <= clock_timestamp() - :per_ms * interval '1 millisecond'`,
    key,
  )
  await tx.trx.raw(
    `insert into node_turns (organization_id, workflow_id, node_id, run_id, path)
     select :organizationId, :workflow_id, :node_id, :run_id, :path
     where not exists (
       select from node_turns where organization_id = :organizationId and workflow_id = :workflow_id
         and node_id = :node_id and run_id = :run_id and path = :path and begun_at is null)`,
    key,
  )
  const { rows } = await tx.trx.raw<{
    rows: { n: string; begun: number; before: number; free_in_ms: number | null }[]
  }>(
    `with turns as (
       select * from node_turns
       where organization_id = :organizationId and workflow_id = :workflow_id and node_id = :node_id
     ), own as (
       select n from turns where run_id = :run_id and path = :path and begun_at is null
     ), waiting as (
       select count(*)::integer as before from turns t
       where begun_at is null and n < (select n from own) and ${WAITS}
     ), begun as (select count(*)::integer as begun from turns where begun_at is not null)
     select (select n from own) as n, begun, before, (
       -- the end of the window of the call whose place it gets
       select extract(epoch from begun_at - clock_timestamp()) * 1000 + :per_ms from turns
       where begun_at is not null order by begun_at
       offset greatest(0, (before - (:limit - begun)) % :limit) limit 1)::double precision as free_in_ms
     from waiting, begun`,
    key,
  )
  const { n, begun, before, free_in_ms } = rows[0]!
  const ahead = before - (limit - begun)
  if (ahead < 0) {
    await tx
      .trx('node_turns')
      .where({ organization_id: tx.organizationId, workflow_id, node_id, n })
      .update({ begun_at: tx.trx.raw('clock_timestamp()') })
    return { begun: true }
  }
  // Without one, calls before it have their turn, and have not begun yet.
  const due = (free_in_ms ?? MOMENT_MS) + Math.floor(ahead / limit) * per_ms
  const isNext = before < limit
  const waitMs = isNext ? due : Math.min(Math.max(due / 2, LEAST_WAIT_MS), due, ASKS_AGAIN_MS)
  return { begun: false, before, waitMs: Math.max(before > 0 ? MOMENT_MS : 1, Math.ceil(waitMs)) }
}
