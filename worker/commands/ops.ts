import { organizationNamed } from '../../db/access/plan-changes.ts'
import { getUsage } from '../../db/access/usage.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import { ConfigError } from '../../db/model/config-error.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { System } from '../../db/postgres/tenancy.ts'
import { VERSION } from '../../db/process/build.ts'
import { listJobs, listQueues } from '../../db/queue/depth.ts'
import { countWork, countWorkOf, listFailing, listHeld, listStuck, type Row } from '../../db/queue/operator-views.ts'
import { operatorCommand } from './operator-command.ts'

const LIMIT = 200

const VIEWS: Record<string, (system: System) => Promise<Row[]>> = {
  status: async (system) => {
    const counts = Object.entries(await countWork(system))
    const queues = await listQueues(system)
    const jobs = await listJobs(system)
    return [
      ...counts.map(([name, count]) => figure(name, count)),
      ...queues.map(({ queue, status, count, lag_seconds }) =>
        figure(`${queue} ${status}`, count, { lag_seconds }),
      ),
      ...jobs.map(({ queue, count, oldest_seconds }) => figure(`${queue} open`, count, { oldest_seconds })),
    ]
  },
  stuck: (system) => listStuck(system, LIMIT),
  held: (system) => listHeld(system, LIMIT),
  failing: (system) => listFailing(system, LIMIT),
}

const ORGANIZATION = 'organization'
const USAGE = `usage: npm run ops -- <${Object.keys(VIEWS).join('|')}> [--json]
       npm run ops -- ${ORGANIZATION} <organization id, or email of an owner> [--json]
what there is to do in all organizations, or the use and the open work of one; reads only`

/** `npm run ops`: shows the operator the work of all organizations. */
await operatorCommand('ops', 'the database cannot be read', async (connected) => {
  const given = process.argv.slice(2)
  const [name = '', of, ...others] = given.filter((one) => one !== '--json')
  const isOne = name === ORGANIZATION
  const view = Object.hasOwn(VIEWS, name) ? VIEWS[name] : undefined
  if (!(isOne || view) || isOne !== (of !== undefined) || others.length > 0) throw new ConfigError(USAGE)
  const db = connected()
  const rows = view ? await view(db.system) : await viewOrganization(db, of!)
  if (given.includes('--json')) return JSON.stringify({ version: VERSION, [name]: rows })
  return rows.length > 0 ? table(rows) : `nothing is ${name}`
})

/** What the plan of one organization limits, with its use, and its open work. */
async function viewOrganization(db: Database, of: string): Promise<Row[]> {
  const { id, name } = await organizationNamed(db.system, of)
  const { plan, limits, storage } = await db.tenant(id, SYSTEM, getUsage)
  const work = await countWorkOf(db.system, id)
  const row = (what: string, value: string | number | null, limit: number | null = null): Row => ({
    name: what,
    value,
    limit,
  })
  return [
    row('id', id),
    row('name', name),
    row('plan', plan),
    ...Object.entries(limits).map(([what, { used, limit }]) => row(what, used, limit)),
    row('storage_bytes', storage.used, storage.limit),
    ...Object.entries(work).map(([what, count]) => row(what, count)),
  ]
}

interface Ages {
  lag_seconds?: number | null
  oldest_seconds?: number | null
}

/** A row of `status`. */
function figure(name: string, count: number, { lag_seconds = null, oldest_seconds = null }: Ages = {}): Row {
  const rounded = (seconds: number | null) => (seconds === null ? null : Math.round(seconds))
  return { name, count, lag_seconds: rounded(lag_seconds), oldest_seconds: rounded(oldest_seconds) }
}

/** Columns of the same width, under their names. */
function table(rows: Row[]): string {
  const names = Object.keys(rows[0]!)
  const cells = [names, ...rows.map((row) => names.map((name) => textOf(row[name] ?? '')))]
  const widths = names.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)))
  return cells
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Names and reasons are of tenants: no control character reaches the terminal. */
function textOf(value: string | number | Date): string {
  return (value instanceof Date ? value.toISOString() : String(value)).replace(/\p{Cc}+/gu, ' ')
}
