import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../db/postgres/connect.ts'
import type { Soak } from './set-up.ts'

const DRAIN_MS = 120_000

/** Waits until runs and deliveries have ended, then compares them with what was accepted. @returns whether all is there. */
export async function account(db: Database, soak: Soak, say: (line: string) => void): Promise<boolean> {
  const open = async () =>
    (await count(db, 'runs', ['queued', 'running'])) +
    (await count(db, 'deliveries', ['queued', 'delivering'])) +
    (await db.system('events').whereNull('matched_at').count<{ count: number }[]>())[0]!.count
  for (const until = Date.now() + DRAIN_MS; (await open()) > 0 && Date.now() < until; ) await pause(1_000)
  const contacts = [...soak.contacts, ...soak.incomingRecords]
  const present = await found(db, 'select id from contacts where id = any(?)', contacts)
  const completed = await found(
    db,
    "select id from runs where status = 'completed' and id = any(?)",
    soak.runs,
  )
  const deliveries = (await db.system('deliveries').count<{ count: number }[]>())[0]!.count
  const succeeded = await count(db, 'deliveries', ['succeeded'])
  const repeated = [...soak.received.values()].filter((times) => times > 1).length
  say(`records: ${present} of ${contacts.length} accepted are there`)
  say(`runs: ${completed} of ${soak.runs.length} accepted are completed`)
  say(
    `deliveries: ${succeeded} of ${deliveries} succeeded; ${soak.received.size} arrived, ${repeated} more than once`,
  )
  say(`requests that failed: ${soak.failures}`)
  return (
    present === contacts.length &&
    completed === soak.runs.length &&
    deliveries === contacts.length &&
    succeeded === deliveries &&
    soak.received.size === deliveries
  )
}

async function found(db: Database, sql: string, ids: string[]): Promise<number> {
  const { rows } = await db.system.raw<{ rows: unknown[] }>(sql, [ids])
  return rows.length
}

async function count(db: Database, table: string, statuses: string[]): Promise<number> {
  const [row] = await db.system(table).whereIn('status', statuses).count<{ count: number }[]>()
  return row!.count
}
