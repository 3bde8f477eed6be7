import type { System } from '../postgres/tenancy.ts'
import { claimAlone, HAS_LOCK } from './queue-lock.ts'

/**
 * A queue: the rows of a table that wait for a worker. The transaction that makes a row wait also queues it, so nothing
 * is lost between the two, and `tx.wake()` tells the workers after its commit (`worker/relay.ts`; they poll, too).
 * 1. `claim` leases rows: until the lease ends nobody else claims them.
 * 2. The worker does the work, which may be done twice: a signal is repeated, a started workflow is "already started".
 * 3. `release`, or a status change of the subject (`moves/`), ends the lease and takes the row out of the queue. If the
 *    worker dies, the lease ends by itself, and another worker claims the row.
 *
 * A long job is such a row, too, which waits again after each turn: `paged-jobs.ts`. Other forms of claims:
 * - runs (`db/runs/claims.ts`) and deliveries (`db/outgoing/queue.ts`), because the claim decides how much may run at
 *   once, and by whose worker;
 * - events (`db/events/match.ts`), because they are matched in their order, by one relay, in the transaction that claims
 *   them, so they need no lease;
 * - held runs (`db/runs/holds/held.ts`), because the runs of an organization compete for keys and rates: one transaction
 *   decides about them under a lock of the organization, and sets the time of the next look for those that must wait;
 * - late runs and reminders of tasks (`due-rows.ts`), because their whole work is to raise events in the transaction that
 *   locks the rows; the list before it claims nothing, and only finds the organizations;
 * - changes for lists (`db/records/lists/changes.ts`), likewise, but under a lock of the organization, because they lock
 *   its lists;
 * - unchecked deliveries (`claimIdleDeliveries`), because nothing is queued: the sweep marks the pages that it has
 *   checked.
 * The purges and the sweep are no queues: one elected worker does them (`sweep-state.ts`).
 */
export interface Queue<Row> {
  /** Leases up to `limit` rows that wait. Claims at the same time take different rows. */
  claim(system: System, limit: number): Promise<Row[]>
  /** Ends the leases of these rows, whose work is done. */
  release(system: System, rows: Row[]): Promise<void>
}

/** Conditions and expressions are SQL on the table's row, `r` where a subquery needs it. */
export interface QueueOptions {
  table: string
  /** The columns of its primary key. */
  key: readonly string[]
  /** Whether the row waits for a worker. Has the condition of a partial index. */
  waits: string
  /** Which rows come first. */
  order: string
  /** The columns of a claimed row beside its key. */
  returning?: readonly string[]
  /** The column of the lease. The time at which a row is due can be its lease. */
  lease?: string
  /** Duration of a lease; longer than the worker's work on the row. Default 10. */
  seconds?: number
  /** What a claim sets besides. */
  sets?: string
  /** Organizations take turns, each with so many rows at once; otherwise the order alone decides. */
  turns?: Turns
  /** How a released row leaves the queue; absent if it waits again, or has left it by a status change. */
  done?: Done
}

interface Turns {
  slots: number
  /** The number of slots that rows of the organization `o` occupy that do not wait any more. */
  occupied?: string
}

interface Done {
  /** What a release sets in the row `r`, which was claimed as `s`. */
  sets: string
  /** Returned columns that must be as they were when the row was claimed. */
  same?: readonly string[]
  /** Must still hold. */
  if?: string
}

const LEASE = 'lease_until'
const LEASE_SECONDS = 10

/** SQL: whether nobody has leased the row. */
export const isUnleased = (lease: string): string => `(${lease} is null or ${lease} < now())`

export const defineQueue = <Row extends object>(options: QueueOptions): Queue<Row> => ({
  claim: options.turns ? claimInTurns(options, options.turns) : claimInOrder(options),
  release: endLeases(options),
})

const claimInOrder =
  <Row>(options: QueueOptions) =>
  async (system: System, limit: number): Promise<Row[]> => {
    const { table, key, waits, order, lease = LEASE } = options
    const { rows } = await system.raw<{ rows: Row[] }>(
      `update ${table} r set ${leased(options)}
       where (${key}) in (
         select ${key} from ${table} r where ${waits} and ${isUnleased(lease)}
         order by ${order} limit ? for no key update skip locked)
       returning ${returned(options)}`,
      [limit],
    )
    return rows
  }

/** Round-robin: the oldest row of each organization with a free slot comes before the second row of any. */
const claimInTurns =
  <Row>(options: QueueOptions, { slots, occupied = '0' }: Turns) =>
  (system: System, limit: number): Promise<Row[]> => {
    const { table, key, waits, order, lease = LEASE } = options
    return claimAlone(
      system,
      table,
      `with organizations as (select distinct r.organization_id from ${table} r where ${waits} and ${HAS_LOCK}),
       candidates as (
         select q.*, random() as lot from organizations o cross join lateral (
           select ${key.map((column) => `r.${column}`)}, r.${lease} as lease,
             row_number() over (order by ${order}) + ${occupied} as turn
           from ${table} r where r.organization_id = o.organization_id and ${waits}
           order by ${order} limit :slots) q
         where q.turn <= :slots and ${isUnleased('q.lease')})
       update ${table} r set ${leased(options)}
       from (select * from candidates order by turn, lot limit :limit) s
       where ${equal(key)} and ${waits}
       returning ${returned(options)}`,
      { slots, limit },
    )
  }

const endLeases =
  ({ table, key, returning = [], lease = LEASE, done }: QueueOptions) =>
  async (system: System, rows: readonly object[]): Promise<void> => {
    const columns = done ? [...key, ...returning] : [...key]
    await system.raw(
      `update ${table} r set ${lease} = null ${done ? `, ${done.sets}` : ''}
       from jsonb_populate_recordset(null::${table}, ?) s
       where ${equal([...key, ...(done?.same ?? [])])} and ${done?.if ?? 'true'}`,
      [JSON.stringify(rows, columns)],
    )
  }

const leased = ({ lease = LEASE, seconds = LEASE_SECONDS, sets }: QueueOptions) =>
  `${lease} = now() + interval '${seconds} seconds'${sets ? `, ${sets}` : ''}`

const returned = ({ key, returning = [] }: QueueOptions) =>
  [...key, ...returning].map((column) => `r.${column}`).join(', ')

const equal = (columns: readonly string[]) =>
  columns.map((column) => `r.${column} = s.${column}`).join(' and ')
