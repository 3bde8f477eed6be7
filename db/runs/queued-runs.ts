import type { Knex } from 'knex'
import { limitSql } from '../access/plans.ts'

/** A count is used for so long; runs that are queued by this process meanwhile are added to it. */
const KEPT_MS = 1_000
/** Organizations whose count is kept, before old counts are dropped. */
const MANY = 1_000

interface Known {
  at: number
  /** The limit of the organization, and its queued runs, counted up to it. */
  read: Promise<{ limit: number; count: number }>
  /** Those that this process has queued since. */
  added: number
}

/**
 * Limits the queued runs of organizations (`max_queued`). A process counts them at most once a second for each, so that
 * the start of a run costs no statement: several processes may exceed the limit by what they start in a second.
 */
export class QueuedRuns {
  private readonly known = new Map<string, Known>()

  /** @returns `granted`: how many of the `wanted` runs the organization may queue now. They count as queued. */
  async take(db: Knex, organizationId: string, wanted = 1): Promise<{ granted: number; limit: number }> {
    const known = this.countOf(db, organizationId)
    const { limit, count } = await known.read.catch((error: unknown) => {
      if (this.known.get(organizationId) === known) this.known.delete(organizationId)
      throw error
    })
    const granted = Math.max(0, Math.min(wanted, limit - count - known.added))
    known.added += granted
    return { granted, limit }
  }

  private countOf(db: Knex, organizationId: string): Known {
    const now = Date.now()
    const known = this.known.get(organizationId)
    if (known && now - known.at < KEPT_MS) return known
    if (this.known.size > MANY)
      for (const [id, { at }] of this.known) if (now - at >= KEPT_MS) this.known.delete(id)
    const fresh = { at: now, read: countQueued(db, organizationId), added: 0 }
    this.known.set(organizationId, fresh)
    return fresh
  }
}

async function countQueued(db: Knex, organizationId: string): Promise<{ limit: number; count: number }> {
  const { rows } = await db.raw<{ rows: { limit: number; count: number }[] }>(
    `select ${MOST} as limit, cast((select count(*) from (
       select from runs r where r.organization_id = o.id and r.status = 'queued' limit ${MOST}) queued) as integer) as count
     from organizations o where o.id = ?`,
    [organizationId],
  )
  return rows[0] ?? { limit: 0, count: 0 }
}

const MOST = limitSql('max_queued')
