import type { ItemResult, KeptLoop, LoopItem, RunLoop } from '../../workflows/interpret/run-state.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The loops of runs. `run_loops` has a row for each loop that a run has reached, with its items and progress;
 * `run_iterations` has a row for each opened item. A segment loads only the open items (`lockRun`).
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
       on conflict (organization_id, run_id, loop) do update set count = excluded.count, next = excluded.next,
         succeeded = excluded.succeeded, failed = excluded.failed, bytes = excluded.bytes, open = excluded.open,
         concurrency = excluded.concurrency, on_item_error = excluded.on_item_error
     )`

/** SQL of `recordSegment`: writes iterations. */
export const ITERATIONS = `, iterations as (
       insert into run_iterations (organization_id, run_id, loop, index, status, item, output, error, segment,
         settled_segment, started_at, ended_at, met)
       select run.organization_id, run.id, i.loop, i.index, i.status, i.item, i.output, i.error, i.segment,
         i.settled_segment, i.started_at, i.ended_at, coalesce(i.met, false)
       from run, jsonb_to_recordset(cast(:iterations as jsonb)) as i(loop text, index integer, status text, item jsonb,
         output jsonb, error jsonb, segment integer, settled_segment integer, started_at timestamptz,
         ended_at timestamptz, met boolean)
       on conflict (organization_id, run_id, loop, index) do update set status = excluded.status,
         output = excluded.output, error = excluded.error, settled_segment = excluded.settled_segment,
         ended_at = excluded.ended_at, met = excluded.met
     )`

/** Up to `count` unopened items of an open loop, from the index `from`. */
export async function listItems(
  tx: Tenant,
  runId: string,
  { loop, segment }: Pick<RunLoop, 'loop' | 'segment'>,
  page: { from: number; count: number },
): Promise<LoopItem[]> {
  const bindings = { organizationId: tx.organizationId, runId, loop, ...page, to: page.from + page.count - 1 }
  if (segment === KEPT) {
    const { rows } = await tx.trx.raw<{ rows: LoopItem[] }>(
      `select i.index, i.item, n.nodes
       from (
         select cast(i.ordinality as integer) - 1 as index, i.value as item
         from run_loops l cross join lateral jsonb_array_elements(l.items) with ordinality i
         where l.organization_id = :organizationId and l.run_id = :runId and l.loop = :loop and i.ordinality > :from
           and not exists (
             select from run_iterations o
             where o.organization_id = l.organization_id and o.run_id = l.run_id and o.loop = l.loop
               and o.index = i.ordinality - 1)
         order by 1 limit :count) i
       cross join lateral (
         select coalesce(jsonb_agg(to_jsonb(n) - 'organization_id' - 'run_id' - 'progress' order by n.position), '[]') as nodes
         from run_nodes n
         where n.organization_id = :organizationId and n.run_id = :runId and n.path = :loop || ':' || i.index) n
       order by i.index`,
      bindings,
    )
    return rows
  }
  const { rows } = await tx.trx.raw<{ rows: { items: unknown[] }[] }>(
    `select jsonb_path_query_array(items, 'strict $[$from to $to]',
       jsonb_build_object('from', cast(:from as integer), 'to', least(cast(:to as integer), count - 1))) as items
     from run_loops where organization_id = :organizationId and run_id = :runId and loop = :loop`,
    bindings,
  )
  return (rows[0]?.items ?? []).map((item, index) => ({ index: page.from + index, item }))
}

/** The next turn of a loop that repeats, from the index `from`: its item is the result of the turn before. */
export async function findTurn(
  tx: Tenant,
  runId: string,
  { loop, segment }: Pick<RunLoop, 'loop' | 'segment'>,
  from: number,
): Promise<LoopItem> {
  const { rows } = await tx.trx.raw<{ rows: LoopItem[] }>(
    `select t.index, case when t.index = 0 then l.items -> 0 else (
         select i.output from run_iterations i where i.organization_id = l.organization_id and i.run_id = l.run_id
           and i.loop = l.loop and i.index = t.index - 1) end as item,
       case when :kept then (
         select coalesce(jsonb_agg(to_jsonb(n) - 'organization_id' - 'run_id' order by n.position), '[]')
         from run_nodes n where n.organization_id = l.organization_id and n.run_id = l.run_id
           and n.path = l.loop || ':' || t.index) else '[]' end as nodes
     from run_loops l
     cross join lateral (
       select greatest(cast(:from as integer), coalesce(max(i.index) + 1, 0)) as index from run_iterations i
       where i.organization_id = l.organization_id and i.run_id = l.run_id and i.loop = l.loop) t
     where l.organization_id = :organizationId and l.run_id = :runId and l.loop = :loop`,
    { organizationId: tx.organizationId, runId, loop, from, kept: segment === KEPT },
  )
  return rows[0]!
}

/** The segment number of rows that a retry keeps from the original run: before the first segment. */
export const KEPT = -1

/**
 * The loop of a retry with the results of the original run. `met`: the condition of a repeat held after its last turn.
 */
export function findKeptLoop(tx: Tenant, runId: string, loop: string): Promise<KeptLoop | undefined> {
  return tx
    .trx('run_loops')
    .where({ organization_id: tx.organizationId, run_id: runId, loop, segment: KEPT })
    .first<KeptLoop | undefined>(
      'loop',
      'count',
      'next',
      'succeeded',
      'failed',
      'bytes',
      'concurrency',
      'on_item_error',
      'segment',
      tx.trx.raw(
        `exists (select from run_iterations i where i.organization_id = run_loops.organization_id
           and i.run_id = run_loops.run_id and i.loop = run_loops.loop and i.met) as met`,
      ),
    )
}

/** The results of a loop's items, in order. */
export async function listResults(tx: Tenant, runId: string, loop: string): Promise<ItemResult[]> {
  const rows = await tx
    .trx('run_iterations')
    .where({ organization_id: tx.organizationId, run_id: runId, loop })
    .whereNotNull('settled_segment')
    .orderBy('index')
    .select<(ItemResult & { error: ItemResult['error'] | null })[]>(
      'index',
      'status',
      'output',
      'error',
      tx.trx.raw('case when error is not null then item end as item'),
    )
  return rows.map(({ item, error, ...result }) => ({ ...result, ...(error && { item, error }) }))
}

/** Reverts the loops of a run to the start of a segment, for `rewind`. */
export async function rewindLoops(tx: Tenant, runId: string, segment: number): Promise<void> {
  const key = { organization_id: tx.organizationId, run_id: runId }
  await tx.trx('run_loops').where(key).andWhere('segment', '>=', segment).delete()
  const iterations = () => tx.trx('run_iterations').where(key)
  await iterations().andWhere('segment', '>=', segment).delete()
  await iterations()
    .andWhere('segment', '>', KEPT)
    .andWhere((row) => row.where('settled_segment', '>=', segment).orWhere('status', 'cancelled'))
    .update({
      status: 'running',
      output: null,
      error: null,
      settled_segment: null,
      ended_at: null,
      met: false,
    })
  const bindings = { organizationId: tx.organizationId, runId, segment }
  await tx.trx.raw(
    `update run_nodes n set status = 'waiting', output = null, error = null, handle = null, settled_segment = null,
       ended_at = null, wait_until = case when not exists (
         select from run_iterations i where i.organization_id = l.organization_id and i.run_id = l.run_id
           and i.loop = l.loop and i.settled_segment is null) then n.wait_until end
     from run_loops l
     where l.organization_id = :organizationId and l.run_id = :runId and ${ITS_NODE}
       and (n.settled_segment >= :segment or n.settled_segment is null)`,
    bindings,
  )
  await tx.trx.raw(
    `update run_loops l set next = i.next, succeeded = i.succeeded, failed = i.failed, bytes = i.bytes,
       open = exists (select from run_nodes n where ${ITS_NODE} and n.settled_segment is null)
     from (
       select l.loop, coalesce(max(i.index) filter (where i.segment > ${KEPT}) + 1, 0) as next,
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

/** SQL: whether the node `n` is the node of the loop `l`. */
const ITS_NODE = `n.organization_id = l.organization_id and n.run_id = l.run_id and n.path = l.path and n.node_id = l.node_id`
