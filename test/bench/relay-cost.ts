import { randomUUID } from 'node:crypto'
import { claimDeliveries } from '../../db/outgoing/queue.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { median } from './load.ts'
import { withOwnPostgres } from './own-postgres.ts'
import { print } from './report.ts'

const RELAY = randomUUID()
const ENDPOINTS = 50
const CLAIMS = 40
const FEW = 1_000

/**
 * The time of a claim of the relay while `many` deliveries wait, compared with 1,000, in turns: one of five waits for a
 * retry, the others for a slot of their endpoint. On a separate PostgreSQL, without workers.
 */
export const benchRelayCost = (many: number): Promise<void> =>
  withOwnPostgres(async (db, owner) => {
    const times: Record<number, number[]> = { [FEW]: [], [many]: [] }
    // Twice each, so that a change of the machine's speed affects both.
    for (const rows of [FEW, many, FEW, many]) {
      await fill(db, rows)
      // Autovacuum would do this too late after so many rows.
      await owner.query('vacuum analyze')
      for (let n = 0; n < CLAIMS; n++) times[rows]!.push(await claim(db))
    }
    const [few, much] = [median(times[FEW]!), median(times[many]!)]
    print(
      `a claim with ${many} waiting: ${much.toFixed(1)} ms, with ${FEW}: ${few.toFixed(1)} ms, ×${(much / few).toFixed(2)}`,
    )
  })

/** The milliseconds of one claim, which is then rolled back. */
async function claim(db: Database): Promise<number> {
  const started = performance.now()
  const claimed = await claimDeliveries(db.system, RELAY, 32)
  const took = performance.now() - started
  if (claimed.length === 0) throw new Error('nothing was claimed')
  await db
    .system('deliveries')
    .whereIn(
      'id',
      claimed.map(({ id }) => id),
    )
    .update({ lease_until: null })
  return took
}

async function fill({ system }: Database, rows: number): Promise<void> {
  await system.raw('delete from organizations')
  await system.raw(
    `with organization as (insert into organizations (id, name, plan) values (gen_random_uuid(), 'Bench', 'enterprise') returning id)
     insert into outgoing_webhooks (organization_id, id, name, url, events, secret_sealed, concurrency)
     select o.id, gen_random_uuid(), 'Bench', 'https://a.example', '{*}', 'x', 10
     from organization o, generate_series(1, ?)`,
    [ENDPOINTS],
  )
  await system.raw(
    `insert into events (organization_id, id, name, data, actor, matched_at)
     select o.id, gen_random_uuid(), 'a.b', '{}', '{}', now() from organizations o, generate_series(1, ?)`,
    [rows],
  )
  await system.raw(
    `insert into deliveries (organization_id, id, webhook_id, event_id, status, next_attempt_at, started_at)
     select e.organization_id, e.id, w.ids[1 + e.n % ?], e.id,
       case when e.n % 5 = 0 then 'delivering' else 'queued' end,
       case when e.n % 5 = 0 then now() + interval '1 hour' end, now()
     from (select organization_id, id, row_number() over (order by id) as n from events) e,
       (select array_agg(id) as ids from outgoing_webhooks) w`,
    [ENDPOINTS],
  )
  // Each endpoint has attempts in progress, and free slots.
  await system.raw(
    `update deliveries set status = 'delivering', slot_until = now() + interval '1 hour' where id in (
       select d.id from outgoing_webhooks w cross join lateral (
         select id from deliveries d where d.webhook_id = w.id and d.status = 'queued' order by id limit 3) d)`,
  )
}
