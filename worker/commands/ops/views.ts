import { organizationNamed } from '../../../db/access/plan-changes.ts'
import { getUsage } from '../../../db/access/usage.ts'
import { SYSTEM } from '../../../db/model/actor.ts'
import type { Database } from '../../../db/postgres/connect.ts'
import type { System } from '../../../db/postgres/tenancy.ts'
import { listJobs, listQueues } from '../../../db/queue/depth.ts'
import {
  countWork,
  countWorkOf,
  listFailing,
  listHeld,
  listStuck,
  type Row,
} from '../../../db/queue/operator-views.ts'

const LIMIT = 200

/** What there is to do in all organizations. Reads only. */
export const VIEWS: Record<string, (system: System) => Promise<Row[]>> = {
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

interface Ages {
  lag_seconds?: number | null
  oldest_seconds?: number | null
}

/** A row of `status`. */
function figure(name: string, count: number, { lag_seconds = null, oldest_seconds = null }: Ages = {}): Row {
  const rounded = (seconds: number | null) => (seconds === null ? null : Math.round(seconds))
  return { name, count, lag_seconds: rounded(lag_seconds), oldest_seconds: rounded(oldest_seconds) }
}

/** What the plan of one organization limits, with its use, and its open work. `of`: as `organizationNamed` takes it. */
export async function viewOrganization(db: Database, of: string): Promise<Row[]> {
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
