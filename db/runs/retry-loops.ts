import { splitKey } from '../../workflows/interpret/frames.ts'
import {
  loopsAround,
  type PreparedFrame,
  prepareFrame,
  type RetriedNode,
} from '../../workflows/interpret/retry.ts'
import type { Program } from '../../workflows/language/definition.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import { LOOP } from '../../workflows/shared/limits.ts'
import { AppError } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The effects of a retry on the nodes outside of any loop (path '') and on those of each item that runs again. */
export interface RetryFrame extends PreparedFrame {
  path: string
}

/**
 * Number of items of a loop that keep their results, and of items that run, summed over all items of the outer loops.
 */
export interface LoopRetry {
  node_id: string
  kept: number
  again: number
}

interface Wanted {
  /** A node in a loop. */
  from_node: string | null
  /** The paths of items that run again, whether they completed or not. All other failed items keep their failure. */
  items: string[] | undefined
}

/** SQL: the ids of a loop and its outer loops, from its key. */
const LOOP_IDS = `regexp_replace(i.loop, ':[0-9]+', '', 'g')`

/**
 * Plans the items of the loops that a retry resumes. A completed item keeps its result, unless it contains an item that
 * runs again. In other items, settled nodes are reused, except `from_node` and the nodes after it. A turn reads the
 * result of the turn before, so after the first turn that runs again all others run again. Throws `conflict`.
 */
export async function prepareLoops(
  tx: Tenant,
  runId: string,
  program: Program,
  top: PreparedFrame,
  { from_node, items }: Wanted,
): Promise<{ frames: RetryFrame[]; loops: LoopRetry[] }> {
  const outerLoops = from_node === null ? [] : loopsAround(program, from_node)
  const starts = await listStarts(tx, runId, outerLoops, items)
  const startIn = new Map(starts.map((path) => [path, from_node!]))
  // The outer items run again, too.
  for (const path of starts)
    for (let { path: outer, id } = holderOf(path); outer !== ''; { path: outer, id } = holderOf(outer))
      startIn.set(outer, id)

  const frames: RetryFrame[] = [{ path: '', ...top }]
  const loops = new Map<string, LoopRetry>()
  const known = new Map<string, PreparedFrame>()
  for (let open = top.resumed; open.length > 0; ) {
    const repeats = (id: string) => findNodeType(program.nodes[id]?.type ?? '')?.repeats === true
    for (const { node_id, total, ended } of await countItems(tx, runId, open)) {
      const loop = loops.get(node_id) ?? { node_id, kept: 0, again: 0 }
      // How many turns will follow is not known.
      const left = repeats(node_id) ? 0 : total - ended
      loops.set(node_id, { node_id, kept: loop.kept + ended, again: loop.again + left })
    }
    const again = await listAgain(tx, runId, open, {
      forced: [...startIn.keys()],
      named: items !== undefined,
    })
    const later = await listLater(tx, runId, firstTurns(again, repeats))
    const anew = new Set(later.map(({ path }) => path))
    open = []
    for (const { loop, path } of later) {
      const counts = loops.get(splitKey(loop).id)!
      counts.kept -= 1
      counts.again += 1
      frames.push({ path, reused: [], resumed: [] })
    }
    for (const { loop, path, nodes } of again.filter((one) => !anew.has(one.path))) {
      const { id } = splitKey(loop)
      const counts = loops.get(id)!
      counts.kept -= 1
      counts.again += 1
      const from = startIn.get(path)
      const key = `${id} ${from} ${nodes}`
      const prepared = known.get(key) ?? prepareItem(program, id, from, nodes)
      known.set(key, prepared)
      frames.push({ path, ...prepared })
      for (const inner of prepared.resumed) open.push(`${path}/${inner}`)
    }
    if (frames.length > LOOP.items + 1)
      throw new AppError('conflict', `more than ${LOOP.items} items would run again`, {
        param: 'from_node',
        hint: 'start with the loop itself, or send fewer items',
      })
  }
  return { frames, loops: [...loops.values()] }
}

/** For each loop that repeats, the index of its first turn that runs again. */
function firstTurns(
  again: { loop: string; path: string }[],
  repeats: (id: string) => boolean,
): Record<string, number> {
  const first: Record<string, number> = {}
  for (const { loop, path } of again)
    if (repeats(splitKey(loop).id))
      first[loop] = Math.min(first[loop] ?? Number.POSITIVE_INFINITY, Number(path.slice(loop.length + 1)))
  return first
}

function prepareItem(program: Program, loop: string, from: string | undefined, nodes: string): PreparedFrame {
  const rows = (JSON.parse(nodes) as Omit<RetriedNode, 'path'>[]).map((row) => ({ path: '', ...row }))
  const byId = new Map(rows.map((row) => [row.node_id, row]))
  return prepareFrame(program, byId, { loop, from: from !== undefined && byId.has(from) ? [from] : [] })
}

/** The frame that contains the loop of an item, and the id of that loop. */
const holderOf = (path: string) => splitKey(path.slice(0, path.lastIndexOf(':')))

/** The items in which `from_node` runs again: the named ones, or all items of its loop that did not complete. */
async function listStarts(
  tx: Tenant,
  runId: string,
  outerLoops: string[],
  items: string[] | undefined,
): Promise<string[]> {
  if (outerLoops.length === 0) {
    if (items === undefined) return []
    throw new AppError('conflict', 'items requires a from_node that is in a loop', {
      param: 'items',
    })
  }
  const { rows } = await tx.trx.raw<{ rows: { path: string }[] }>(
    `select i.path from run_iterations i
     where i.organization_id = :organizationId and i.run_id = :runId and ${LOOP_IDS} = :loop
       and case when cast(:items as text[]) is null then i.status <> 'completed' else i.path = any(:items) end`,
    { organizationId: tx.organizationId, runId, loop: outerLoops.join('/'), items: items ?? null },
  )
  const found = new Set(rows.map(({ path }) => path))
  const unknown = items?.filter((path) => !found.has(path)) ?? []
  if (unknown.length > 0)
    throw new AppError(
      'conflict',
      `${unknown.slice(0, 10).join(', ')}: the run has started no such item of ${outerLoops.at(-1)}`,
      { param: 'items', hint: `send paths as GET /v1/runs/{run_id}/iterations returns them` },
    )
  return [...found]
}

async function countItems(tx: Tenant, runId: string, loops: string[]) {
  const { rows } = await tx.trx.raw<{ rows: { node_id: string; total: number; ended: number }[] }>(
    `select l.node_id, cast(sum(l.count) as integer) as total, cast(sum(i.opened) as integer) as ended
     from run_loops l cross join lateral (
       select count(*) as opened from run_iterations i
       where i.organization_id = l.organization_id and i.run_id = l.run_id and i.loop = l.loop) i
     where l.organization_id = :organizationId and l.run_id = :runId and l.loop = any(:loops) group by l.node_id`,
    { organizationId: tx.organizationId, runId, loops },
  )
  return rows
}

/** The turns after the first ones that run again. */
async function listLater(tx: Tenant, runId: string, first: Record<string, number>) {
  if (Object.keys(first).length === 0) return []
  const { rows } = await tx.trx.raw<{ rows: { loop: string; path: string }[] }>(
    `select i.loop, i.path from run_iterations i
     join jsonb_each_text(cast(:first as jsonb)) as f(loop, index) on f.loop = i.loop
     where i.organization_id = :organizationId and i.run_id = :runId and i.index > cast(f.index as integer)`,
    { organizationId: tx.organizationId, runId, first: JSON.stringify(first) },
  )
  return rows
}

/** The opened items of loops that run again, with their nodes as JSON text, which is equal for most items. */
async function listAgain(
  tx: Tenant,
  runId: string,
  loops: string[],
  { forced, named }: { forced: string[]; named: boolean },
) {
  const { rows } = await tx.trx.raw<{ rows: { loop: string; path: string; nodes: string }[] }>(
    `select i.loop, i.path, n.nodes
     from run_iterations i
     join run_loops l on l.organization_id = i.organization_id and l.run_id = i.run_id and l.loop = i.loop
     cross join lateral (
       select cast(coalesce(jsonb_agg(jsonb_build_object('node_id', n.node_id, 'node_type', n.node_type,
         'status', n.status, 'handle', n.handle) order by n.node_id), '[]') as text) as nodes
       from run_nodes n
       where n.organization_id = i.organization_id and n.run_id = i.run_id and n.path = i.path) n
     where i.organization_id = :organizationId and i.run_id = :runId and i.loop = any(:loops)
       and (i.path = any(:forced) or i.status not in ('completed', 'failed')
         or i.status = 'failed' and not (:named and l.on_item_error = 'continue'))
     limit ${LOOP.items + 1}`,
    { organizationId: tx.organizationId, runId, loops, forced, named },
  )
  return rows
}

/**
 * Copies the rows of a run that its retry keeps, as settled before the first segment. Items that run again get no row
 * in a resumed loop: they are opened again, in order, like other items.
 */
export async function copyKept(
  tx: Tenant,
  { from, to }: { from: string; to: string },
  frames: RetryFrame[],
): Promise<void> {
  const bindings = { organizationId: tx.organizationId, from, to, frames: JSON.stringify(frames) }
  await tx.trx.raw(
    `${FRAMES}
     insert into run_nodes (organization_id, run_id, path, node_id, node_type, title, status, attempt, input, output,
       handle, error, wait_until, segment, settled_segment, position, started_at, ended_at)
     select n.organization_id, :to, n.path, n.node_id, n.node_type, n.title, n.status, n.attempt, n.input, n.output,
       n.handle, n.error, n.wait_until, -1, -1, row_number() over (partition by n.path order by n.position) - 1,
       n.started_at, n.ended_at
     from ${framed('run_nodes', 'path, node_id')}
     where case when n.path = n.frame then n.node_id = any(n.reused) else ${IN_KEPT_LOOP} end`,
    bindings,
  )
  await tx.trx.raw(
    `${FRAMES}
     insert into run_iterations (organization_id, run_id, loop, index, status, item, output, error, segment,
       settled_segment, started_at, ended_at, met)
     select n.organization_id, :to, n.loop, n.index, n.status, n.item, n.output, n.error, -1, -1, n.started_at, n.ended_at,
       n.met
     from ${framed('run_iterations', 'loop, index')} where n.path <> n.frame and ${IN_KEPT_LOOP}`,
    bindings,
  )
  await tx.trx.raw(
    `${FRAMES}
     insert into run_loops (organization_id, run_id, loop, items, count, next, succeeded, failed, bytes, concurrency,
       on_item_error, open, segment)
     select n.organization_id, :to, n.loop, n.items, n.count, case when r.goes_on then 0 else n.next end,
       case when r.goes_on then i.succeeded else n.succeeded end, case when r.goes_on then i.failed else n.failed end,
       case when r.goes_on then i.bytes else n.bytes end, n.concurrency, n.on_item_error, false, -1
     from ${framed('run_loops', 'loop')}
     cross join lateral (select n.path = n.frame and n.node_id = any(n.resumed) as goes_on) r
     cross join lateral (
       select count(*) filter (where i.status = 'completed') as succeeded,
         count(*) filter (where i.status = 'failed') as failed,
         coalesce(sum(octet_length(cast(i.output as text))), 0) as bytes
       from run_iterations i
       where i.organization_id = n.organization_id and i.run_id = cast(:to as uuid) and i.loop = n.loop) i
     where case when n.path = n.frame then n.node_id = any(n.reused || n.resumed) else ${IN_KEPT_LOOP} end`,
    bindings,
  )
}

const FRAMES = `with frames as materialized (
       select * from jsonb_to_recordset(cast(:frames as jsonb)) as f(path text, reused text[], resumed text[]))`

/** SQL: the rows of a table of the original run, each with the innermost prepared frame around it. */
const framed = (table: string, key: string) => `(
       select distinct on (${key}) t.*, f.path as frame, f.reused, f.resumed
       from ${table} t cross join lateral (select string_to_array(t.path, '/') as parts) p
       cross join lateral generate_series(0, cardinality(p.parts)) as depth
       join frames f on f.path = array_to_string(p.parts[1:depth], '/')
       where t.organization_id = :organizationId and t.run_id = :from
       order by ${key}, depth desc) n`

/** SQL: whether a row inside of its frame belongs to a loop of that frame that is reused or resumed. */
const IN_KEPT_LOOP = `split_part(substr(n.path, length(n.frame) + case when n.frame = '' then 1 else 2 end), ':', 1)
         = any(n.reused || n.resumed)`
