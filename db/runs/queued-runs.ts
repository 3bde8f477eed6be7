import type { Knex } from 'knex'
import { limitSql } from '../access/plans.ts'
import { AppError } from '../model/errors.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'

/** A count is used for so long; runs that are queued by this process meanwhile are added to it. */
const KEPT_MS = 1_000
/** When a refused request may find a place. */
const RETRY_SECONDS = 5
/** Organizations whose count is kept, before old counts are dropped. */
const MANY = 1_000

interface Known {
  at: number
  /** The limit of the organization, and its queued runs, counted up to it. */
  read: Promise<{ limit: number; count: number }>
  /** The number of runs that this process has queued since. */
  added: number
}

/**
 * Limits the queued runs of organizations (`max_queued`). A process counts them at most once a second for each, so that
 * the start of a run costs no statement: several processes may exceed the limit by what they start in a second.
 */
export class QueuedRuns {
  private readonly known = new Map<string, Known>()

  /** Takes a place for a run that a request queues. Throws quota_exceeded. */
  takePlace({ trx, organizationId }: Tenant): Promise<void> {
    return this.require(trx, organizationId)
  }

  /** As `takePlace`, for a request whose only transaction is one statement. */
  takePlaceOf(system: System, organizationId: string): Promise<void> {
    return this.require(system, organizationId)
  }

  private async require(db: Knex, organizationId: string): Promise<void> {
    const { granted, limit } = await this.take(db, organizationId)
    if (granted > 0) return
    throw new AppError(
      'quota_exceeded',
      `the organization has ${limit} queued runs, as many as its plan allows`,
      {
        retry_after: RETRY_SECONDS,
        hint: 'wait until some have started, or cancel queued runs: POST /v1/run-batches',
      },
    )
  }

  /** @returns `granted`: how many of the `wanted` runs the organization may queue now. They count as queued. */
  async take(db: Knex, organizationId: string, wanted = 1): Promise<{ granted: number; limit: number }> {
    const known = this.countOf(db, organizationId)
    const { limit, count } = await known.read.catch(() => {
      // The transaction of another request, in which it was read, has failed.
      if (this.known.get(organizationId) === known) this.known.delete(organizationId)
      return countQueued(db, organizationId)
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
