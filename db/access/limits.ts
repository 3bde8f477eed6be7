import type { Knex } from 'knex'

/** How much of something an organization may do in a fixed window: requests a minute of a key, calls a month, … */
export interface WindowRule {
  organizationId: string
  /** What is counted: `key:<id>`, `organization`, `incoming:<webhook id>`, … */
  subject: string
  limit: number
  /** Length in seconds, or the calendar month (UTC). */
  period: number | 'month'
}

/** What is left of a window after an attempt to take from it. */
export interface Taken {
  allowed: boolean
  limit: number
  remaining: number
  /** UTC epoch seconds at which the window ends. */
  resetsAt: number
}

/** The window of `period` that `now` (epoch milliseconds) is in. */
export function windowAt(period: number | 'month', now: number): { start: number; end: number } {
  if (period === 'month') {
    const date = new Date(now)
    return {
      start: Date.UTC(date.getUTCFullYear(), date.getUTCMonth()),
      end: Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1),
    }
  }
  const start = now - (now % (period * 1000))
  return { start, end: start + period * 1000 }
}

/**
 * Takes up to `amount` from a window, exactly, in one statement; also inside a transaction, whose rollback gives it
 * back (and which then holds the window's row until it ends).
 * @returns how much of it was granted, and how much of the window is used now.
 */
export async function takeFromWindow(
  db: Knex,
  rule: WindowRule,
  amount = 1,
  now = Date.now(),
): Promise<{ granted: number; used: number }> {
  const { start } = windowAt(rule.period, now)
  const { rows } = await db.raw<{ rows: { used: number }[] }>(
    `insert into limit_windows as w (organization_id, subject, window_start, used) values (?, ?, ?, ?)
     on conflict (organization_id, subject, window_start) do update set used = w.used + excluded.used
     returning used`,
    [rule.organizationId, rule.subject, new Date(start), amount],
  )
  // The counter may run past the limit: what was refused is counted too, and hurts nobody until the window ends.
  const used = rows[0]!.used
  return { granted: Math.max(0, Math.min(amount, rule.limit - (used - amount))), used }
}

/** How much of a window is used, without taking from it. */
export async function usedOfWindow(
  db: Knex,
  rule: Pick<WindowRule, 'organizationId' | 'subject' | 'period'>,
  now = Date.now(),
): Promise<number> {
  const { start } = windowAt(rule.period, now)
  const row = await db('limit_windows')
    .where({ organization_id: rule.organizationId, subject: rule.subject, window_start: new Date(start) })
    .first('used')
  return row?.used ?? 0
}

/** Forgets windows that no limit looks at any more; a bounded number at once. */
export async function purgeLimitWindows(system: Knex): Promise<void> {
  await system.raw(
    `delete from limit_windows where ctid in (
       select ctid from limit_windows
       where window_start < now() - interval '1 hour' and window_start <> date_trunc('month', window_start, 'UTC')
          or window_start < now() - interval '62 days'
       limit 10000)`,
  )
}

interface Lease {
  start: number
  end: number
  /** Taken from the database and not yet used by a request. */
  held: number
  /** Used of the whole window, by all processes, when last heard of. */
  used: number
  pending: Promise<void> | undefined
}

/** A lease is this part of what a window has left: small, so that few are lost in a process that idles. */
const LEASE_PART = 50

/**
 * Limits that hold across processes at little cost: each process leases a part of what a window has left and serves
 * requests from it without a round trip; near the limit the leases shrink to one. Exact within one process; with
 * several, what the others hold unused may be refused, never exceeded.
 */
export class LimitWindows {
  private readonly leases = new Map<string, Lease>()
  private sweptAt = 0
  private readonly db: Knex

  constructor(db: Knex) {
    this.db = db
  }

  /** Takes one. Answers without a promise where the lease, or a known refusal, allows it. */
  take(rule: WindowRule): Taken | Promise<Taken> {
    const lease = this.lease(rule)
    if (lease.held > 0) {
      lease.held--
      return taken(rule, lease, true)
    }
    if (lease.used >= rule.limit) return taken(rule, lease, false)
    return this.renew(rule, lease).then(() => this.take(rule))
  }

  private lease(rule: WindowRule): Lease {
    const now = Date.now()
    if (now - this.sweptAt > 60_000) this.sweep(now)
    const id = `${rule.organizationId} ${rule.subject}`
    let lease = this.leases.get(id)
    if (!lease || lease.end <= now) {
      lease = { ...windowAt(rule.period, now), held: 0, used: 0, pending: undefined }
      this.leases.set(id, lease)
    }
    return lease
  }

  private renew(rule: WindowRule, lease: Lease): Promise<void> {
    lease.pending ??= this.fetch(rule, lease).finally(() => {
      lease.pending = undefined
    })
    return lease.pending
  }

  private async fetch(rule: WindowRule, lease: Lease): Promise<void> {
    const amount = Math.max(1, Math.floor((rule.limit - lease.used) / LEASE_PART))
    const { granted, used } = await takeFromWindow(this.db, rule, amount, lease.start)
    lease.held += granted
    lease.used = used
  }

  private sweep(now: number): void {
    this.sweptAt = now
    for (const [id, lease] of this.leases) if (lease.end <= now) this.leases.delete(id)
  }
}

function taken(rule: WindowRule, lease: Lease, allowed: boolean): Taken {
  return {
    allowed,
    limit: rule.limit,
    remaining: Math.max(0, rule.limit - lease.used) + lease.held,
    resetsAt: lease.end / 1000,
  }
}
