import type { Knex } from 'knex'
import type { Actor } from '../model/actor.ts'
import type { Sealer } from '../model/sealer.ts'
import type { PendingSpans } from '../model/spans.ts'
import type { WorkEnd } from '../model/work-end.ts'
import type { RowsStatement } from './gather.ts'
import type { Transaction } from './transaction.ts'

/** Notification channels. Correctness depends on polling; a notification only makes it prompt. */
export type Channel =
  | 'agx_runs'
  | 'agx_cancels'
  | 'agx_event_cancels'
  | 'agx_run_commands'
  | 'agx_run_batches'
  | 'agx_bulk_jobs'
  | 'agx_erasures'
  | 'agx_run_changed'
  | 'agx_waits'
  | 'agx_due_waits'
  | 'agx_mails'
  | 'agx_events'
  | 'agx_deliveries'
  | 'agx_delivery_changes'
  | 'agx_outgoing_replays'
  | 'agx_incoming_replays'
  | 'agx_incoming_polls'
  | 'agx_files'
  | 'agx_lists'
  | 'agx_schedules'
  | 'agx_run_ended'

/**
 * A transaction of one organization: the required first argument of every query on tenant data. Every query names
 * `organizationId` in its `where`; row-level security is the second line of defence.
 */
export interface Tenant {
  readonly trx: Knex
  readonly organizationId: string
  readonly actor: Actor
  /** The import or bulk job whose changes of records are written: the history names it, and its undo reads it there. */
  readonly job?: string | undefined
  /**
   * Declares that the next statement is the last one: COMMIT is sent with it. Only for the code that began the
   * transaction; in a savepoint it does nothing. POST of one record by 4 clients takes 1.15 to 1.4 times the CPU of API
   * and PostgreSQL without it; segments of runs and incoming webhooks gain less than 10 %, so they do not use it. A
   * transaction of one statement has the option `oneStatement` instead. Tested by transaction.test.ts.
   */
  last(): void
  /** Whether writes are sent by `later` where their results are not needed; see `gathering`. */
  readonly gathers: boolean
  /**
   * Sends a statement before the next one, together with others that are equal but for their rows. If PostgreSQL refuses
   * it, the next statement fails with 25P02, or the commit.
   */
  later(statement: RowsStatement): void
  /** Sends NOTIFY on this channel once the transaction has committed. */
  wake(channel: Channel, payload?: string): void
  /** The work that ends in this transaction; logged and counted once it has committed. */
  readonly ends: WorkEnd[]
  /** Seals the values of sensitive fields; undefined in a process that writes none. */
  readonly sealer?: Sealer
  /** Where spans are added that are recorded once it has committed; undefined if traces are not configured. */
  readonly spans?: PendingSpans
}

export const tenantOf = (
  transaction: Transaction,
  organizationId: string,
  actor: Actor,
  wakes: Wakes,
): Tenant => ({
  ...transaction,
  organizationId,
  actor,
  gathers: false,
  ends: [],
  wake: (channel, payload) => wakes.add(channel, payload),
})

/**
 * SQL: the condition on the organization where a statement looks up few of its many rows. Conceals the value from the
 * planner, which otherwise expects no rows of an organization that is missing in its statistics, and reads all of them.
 */
export const OF_ORGANIZATION = 'organization_id = (select ?::uuid)'

/** A notification: its channel, and its payload or ''. */
type Wake = [Channel, string]

/** The distinct notifications requested by one transaction. */
export class Wakes {
  private readonly payloads = new Map<string, Wake>()

  add(channel: Channel, payload = ''): void {
    this.payloads.set(`${channel}:${payload}`, [channel, payload])
  }

  all(): Iterable<Wake> {
    return this.payloads.values()
  }
}

/**
 * The pool of the system role, which sees every organization, or a transaction on it. Code outside of db/ only passes it
 * to the queries of db/.
 */
export type System = Knex

/**
 * The same transaction for a caller who repeats it without this if it fails: a write may fail in a later statement. Many
 * writes take a few statements then; `Gather` has the figures.
 */
export const gathering = (tx: Tenant): Tenant => ({ ...tx, gathers: true })

/** Runs `work` in a savepoint: if it throws, its writes are rolled back and the transaction continues. */
export async function savepoint<T>(tx: Tenant, work: (tx: Tenant) => Promise<T>): Promise<T> {
  const { trx, spans, ends } = tx
  const before = { spans: spans?.length ?? 0, ends: ends.length }
  await trx.raw('savepoint agx')
  try {
    const result = await work({ ...tx, last() {}, gathers: false })
    await trx.raw('release savepoint agx')
    return result
  } catch (error) {
    spans?.truncate(before.spans)
    ends.length = before.ends
    await trx.raw('rollback to savepoint agx; release savepoint agx')
    throw error
  }
}
