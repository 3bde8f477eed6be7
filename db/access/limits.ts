import type { Knex } from 'knex'

/** A limit in a fixed window: requests per minute of a key, calls per month, … */
export interface WindowRule {
  organizationId: string
  /** The counted subject: `key:<id>`, `organization`, `incoming:<webhook id>`, … */
  subject: string
  limit: number
  /** Length in seconds, or the calendar month (UTC). */
  period: number | 'month'
}

/** The state of a window after a request was counted in it. */
export interface Taken {
  allowed: boolean
  limit: number
  remaining: number
  /** UTC epoch seconds at which the window ends. */
  resetsAt: number
}

/** The window of `period` that contains `now` (epoch milliseconds). */
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

const tableOf = (period: number | 'month') => (period === 'month' ? 'limit_months' : 'limit_windows')

/**
 * Takes up to `amount` from a window, exactly, in one statement. Inside a transaction, a rollback returns the amount,
 * and the window's row stays locked until the transaction ends.
 * @returns the granted amount, and the used amount of the window after it.
 */
export async function takeFromWindow(
  db: Knex,
  rule: WindowRule,
  amount = 1,
  now = Date.now(),
): Promise<{ granted: number; used: number }> {
  const { start, end } = windowAt(rule.period, now)
  const { rows } = await db.raw<{ rows: { used: number }[] }>(
    `insert into ${tableOf(rule.period)} as w (organization_id, subject, window_start, ends_at, used) values (?, ?, ?, ?, ?)
     on conflict (organization_id, subject, window_start) do update set used = w.used + excluded.used
     returning used`,
    [rule.organizationId, rule.subject, new Date(start), new Date(end), amount],
  )
  // The counter may exceed the limit: refused requests are counted too, which is harmless until the window ends.
  const used = rows[0]!.used
  return { granted: Math.max(0, Math.min(amount, rule.limit - (used - amount))), used }
}

/**
 * As `takeFromWindow` for many windows, in one statement and in the order of `rules`. The rows are locked in one order,
 * so that concurrent callers do not wait for each other in a circle.
 */
export async function takeFromWindows(
  db: Knex,
  rules: (WindowRule & { amount: number })[],
  now = Date.now(),
): Promise<{ granted: number; used: number }[]> {
  const rows = rules.map(({ organizationId, subject, period, amount }) => {
    if (period === 'month') throw new Error('several windows are taken only of a period in seconds')
    const { start, end } = windowAt(period, now)
    return { organization_id: organizationId, subject, amount, start: new Date(start), end: new Date(end) }
  })
  const { rows: taken } = await db.raw<{
    rows: { organization_id: string; subject: string; used: number }[]
  }>(
    `insert into limit_windows as w (organization_id, subject, window_start, ends_at, used)
     select r.organization_id, r.subject, r.start, r."end", r.amount
     from jsonb_to_recordset(?) as r(organization_id uuid, subject text, amount integer, start timestamptz, "end" timestamptz)
     order by r.organization_id, r.subject
     on conflict (organization_id, subject, window_start) do update set used = w.used + excluded.used
     returning organization_id, subject, used`,
    [JSON.stringify(rows)],
  )
  const usedOf = new Map(taken.map((row) => [`${row.organization_id} ${row.subject}`, row.used]))
  return rules.map(({ organizationId, subject, limit, amount }) => {
    const used = usedOf.get(`${organizationId} ${subject}`)!
    return { granted: Math.max(0, Math.min(amount, limit - (used - amount))), used }
  })
}

export interface TakeOptions {
  /**
   * The commit does not wait for the disk (`synchronous_commit = off`). Only for a statement that is its own
   * transaction. A crash of PostgreSQL can lose the amounts taken since the last flush.
   */
  isFlushedLater?: boolean
}

/**
 * Takes up to `amount` from a window, exactly; refused amounts are not counted. The limit may be infinite. Runs one
 * statement, or two if less than `amount` is left.
 * @returns the granted amount.
 */
export async function takeUpToLimit(
  db: Knex,
  rule: WindowRule,
  amount = 1,
  options: TakeOptions = {},
  now = Date.now(),
): Promise<number> {
  if (await takeWhole(db, rule, amount, options, now)) return amount
  let granted = 0
  while (granted < amount - 1 && (await takeWhole(db, rule, 1, options, now))) granted++
  return granted
}

/** Takes all of `amount` from a window, or nothing. @returns whether it was taken. */
export async function takeWhole(
  db: Knex,
  rule: WindowRule,
  amount: number,
  { isFlushedLater = false }: TakeOptions = {},
  now = Date.now(),
): Promise<boolean> {
  const { start, end } = windowAt(rule.period, now)
  const limit = Math.min(rule.limit, MAX_INTEGER)
  if (limit < amount) return false
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `insert into ${tableOf(rule.period)} as w (organization_id, subject, window_start, ends_at, used) values (?, ?, ?, ?, ?)
     on conflict (organization_id, subject, window_start) do update set used = w.used + excluded.used
       where w.used <= ? - excluded.used
     returning ${isFlushedLater ? "set_config('synchronous_commit', 'off', true)" : 'true'}`,
    [rule.organizationId, rule.subject, new Date(start), new Date(end), amount, limit],
  )
  return rows.length > 0
}

/** Maximum of PostgreSQL's integer. */
const MAX_INTEGER = 2 ** 31 - 1

/** The used amount of a window. */
export async function usedOfWindow(
  db: Knex,
  rule: Pick<WindowRule, 'organizationId' | 'subject' | 'period'>,
  now = Date.now(),
): Promise<number> {
  const { start } = windowAt(rule.period, now)
  const row = await db(tableOf(rule.period))
    .where({ organization_id: rule.organizationId, subject: rule.subject, window_start: new Date(start) })
    .first('used')
  return row?.used ?? 0
}

interface Lease {
  start: number
  end: number
  /** The reserve: taken from the database, not yet used by a request. */
  held: number
  /** The amount used in the window by all processes, as of the last query. */
  used: number
  /** Number of requests that this process served in the window. */
  served: number
  /** Number of requests that wait for the query. */
  waiting: number
  pending: Promise<void> | undefined
}

/** Divides the rest of the window to get the maximum reserve: two idle processes hold at most 2 % of a limit. */
const RESERVE_DIVISOR = 100

/**
 * Rate limits across processes at low cost. A process takes from the database what its waiting requests need plus a
 * reserve, from which it serves later requests without a round trip. The reserve grows with the requests that the
 * process served in the window, so that an idle process holds little, and shrinks to nothing near the limit. The limit
 * is never exceeded. With several processes some requests may be refused while others hold unused reserves: with three
 * processes, less than 2 % of the limit.
 */
export class LimitWindows {
  private readonly leases = new Map<string, Lease>()
  private sweptAt = 0
  private readonly db: Knex

  constructor(db: Knex) {
    this.db = db
  }

  /**
   * Counts one request. Returns without a promise if the reserve is not empty or the window is known to be exhausted.
   */
  take(rule: WindowRule): Taken | Promise<Taken> {
    const lease = this.lease(rule)
    // The reserve can exceed a limit that a change of plan has lowered.
    if (lease.held > 0 && lease.used - lease.held < rule.limit) {
      lease.held--
      lease.served++
      return taken(rule, lease, true)
    }
    if (lease.used >= rule.limit) return taken(rule, lease, false)
    return this.takeAfterQuery(rule, lease)
  }

  private async takeAfterQuery(rule: WindowRule, lease: Lease): Promise<Taken> {
    lease.waiting++
    try {
      await this.renew(rule, lease)
    } finally {
      lease.waiting--
    }
    return this.take(rule)
  }

  /** The state of a window that this process knows to be exhausted, without a query; else undefined. */
  exhausted(rule: WindowRule): Taken | undefined {
    const lease = this.lease(rule)
    return lease.held === 0 && lease.used >= rule.limit ? taken(rule, lease, false) : undefined
  }

  private lease(rule: WindowRule): Lease {
    const now = Date.now()
    if (now - this.sweptAt > 60_000) this.sweep(now)
    const id = `${rule.organizationId} ${rule.subject}`
    let lease = this.leases.get(id)
    if (!lease || lease.end <= now) {
      lease = { ...windowAt(rule.period, now), held: 0, used: 0, served: 0, waiting: 0, pending: undefined }
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
    const reserve = Math.min(lease.served, Math.floor((rule.limit - lease.used) / RESERVE_DIVISOR))
    const { granted, used } = await takeFromWindow(this.db, rule, lease.waiting + reserve, lease.start)
    lease.held += granted
    // The counter includes refused requests.
    lease.used = Math.min(used, rule.limit)
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
