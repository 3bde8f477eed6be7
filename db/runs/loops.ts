import type { ItemResult } from '../../workflows/interpret/run-state.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The loops of runs. `run_loops` has a row for each loop that a run has reached, with its items and how far it is;
 * `run_iterations` one for each item that was opened. A segment loads the open ones only (`lockRun`).
 */

/** SQL of `recordSegment`: writes loops; the items only of new ones. */
export const LOOPS = `, loops as (
       insert into run_loops (organization_id, run_id, loop, count, next, succeeded, failed, bytes, concurrency,
         on_item_error, segment, open, items)
       select run.organization_id, run.id, l.loop, l.count, l.next, l.succeeded, l.failed, l.bytes, l.concurrency,
         l.on_item_error, l.segment, l.open, coalesce(l.items, '[]')
       from run, jsonb_to_recordset(cast(:loops as jsonb)) as l(loop text, count integer, next integer,
         succeeded integer, failed integer, bytes integer, concurrency integer, on_item_error text, segment integer,
         open boolean, items jsonb)
       on conflict (organization_id, run_id, loop) do update set next = excluded.next,
         succeeded = excluded.succeeded, failed = excluded.failed, bytes = excluded.bytes, open = excluded.open
     )`

/** SQL of `recordSegment`: writes iterations. */
export const ITERATIONS = `, iterations as (
       insert into run_iterations (organization_id, run_id, loop, index, status, item, output, error, segment,
         settled_segment, started_at, ended_at)
       select run.organization_id, run.id, i.*
       from run, jsonb_to_recordset(cast(:iterations as jsonb)) as i(loop text, index integer, status text, item jsonb,
         output jsonb, error jsonb, segment integer, settled_segment integer, started_at timestamptz,
         ended_at timestamptz)
       on conflict (organization_id, run_id, loop, index) do update set status = excluded.status,
         output = excluded.output, error = excluded.error, settled_segment = excluded.settled_segment,
         ended_at = excluded.ended_at
     )`

/** Up to `count` items of an open loop, from the index `from`. */
export async function listItems(
  tx: Tenant,
  runId: string,
  loop: string,
  { from, count }: { from: number; count: number },
): Promise<unknown[]> {
  const { rows } = await tx.trx.raw<{ rows: { items: unknown[] }[] }>(
    `select jsonb_path_query_array(items, 'strict $[$from to $to]',
       jsonb_build_object('from', cast(:from as integer), 'to', least(cast(:to as integer), count - 1))) as items
     from run_loops where organization_id = :organizationId and run_id = :runId and loop = :loop`,
    { organizationId: tx.organizationId, runId, loop, from, to: from + count - 1 },
  )
  return rows[0]?.items ?? []
}

/** How the items of a loop ended, in order. */
export async function listResults(tx: Tenant, runId: string, loop: string): Promise<ItemResult[]> {
  const rows = await tx
    .trx('run_iterations')
    .where({ organization_id: tx.organizationId, run_id: runId, loop })
    .whereNotNull('settled_segment')
    .orderBy('index')
    .select<(ItemResult & { error: ItemResult['error'] | null })[]>('index', 'status', 'output', 'error')
  return rows.map(({ error, ...result }) => ({ ...result, ...(error && { error }) }))
}

/** Reverts the loops of a run to the start of a segment, for `rewind`. */
export async function rewindLoops(tx: Tenant, runId: string, segment: number): Promise<void> {
  const key = { organization_id: tx.organizationId, run_id: runId }
  await tx.trx('run_loops').where(key).andWhere('segment', '>=', segment).delete()
  const iterations = () => tx.trx('run_iterations').where(key)
  await iterations().andWhere('segment', '>=', segment).delete()
  await iterations()
    .andWhere((row) => row.where('settled_segment', '>=', segment).orWhere('status', 'cancelled'))
    .update({ status: 'running', output: null, error: null, settled_segment: null, ended_at: null })
  const bindings = { organizationId: tx.organizationId, runId, segment }
  await tx.trx.raw(
    `update run_nodes n set status = 'waiting', output = null, error = null, handle = null, settled_segment = null,
       ended_at = null
     from run_loops l
     where l.organization_id = :organizationId and l.run_id = :runId and ${ITS_NODE}
       and (n.settled_segment >= :segment or n.settled_segment is null)`,
    bindings,
  )
  await tx.trx.raw(
    `update run_loops l set next = i.next, succeeded = i.succeeded, failed = i.failed, bytes = i.bytes,
       open = exists (select from run_nodes n where ${ITS_NODE} and n.settled_segment is null)
     from (
       select l.loop, coalesce(max(i.index) + 1, 0) as next,
         count(*) filter (where i.status = 'completed') as succeeded,
         count(*) filter (where i.status = 'failed') as failed,
         coalesce(sum(octet_length(i.output::text)), 0) as bytes
       from run_loops l left join run_iterations i
         on i.organization_id = l.organization_id and i.run_id = l.run_id and i.loop = l.loop
       where l.organization_id = :organizationId and l.run_id = :runId
       group by l.loop) i
     where l.organization_id = :organizationId and l.run_id = :runId and l.loop = i.loop`,
    bindings,
  )
}

/** SQL: whether the node `n` is that of the loop `l`. */
const ITS_NODE = `n.organization_id = l.organization_id and n.run_id = l.run_id and n.path = l.path and n.node_id = l.node_id`
