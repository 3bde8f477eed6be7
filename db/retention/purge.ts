import type { Knex } from 'knex'

/**
 * A purge: rows of one kind that are deleted after some time, in batches. Each batch is a short transaction, which
 * finds its rows by an index and skips locked rows.
 */
export interface Purge {
  /** The deleted rows, for the log. */
  name: string
  /** The tables that it deletes from, itself or through a foreign key. */
  tables: readonly string[]
  /** The retention, as text for people. */
  keeps: string
  /** The index that finds the rows. */
  index: string
  /** Maximum number of rows that a batch reads. */
  rows: number
  /** The time between two passes over all rows, in minutes. */
  everyMinutes: number
  /** @param position the end of the previous batch of this pass. */
  batch(trx: Knex, rows: number, position: Position | undefined): Promise<Batch>
}

/** A position in a pass: an organization, and a key within it. */
export interface Position {
  organization_id: string
  before: Date
  id: string
}

export interface Batch {
  deleted: number
  /** Whether further rows may follow. */
  more: boolean
  position?: Position | undefined
}

type Described = Pick<Purge, 'name' | 'tables' | 'keeps' | 'index' | 'rows'>

/**
 * Deletes rows of all organizations that are older than the retention, oldest first. `expired` selects exactly those
 * rows.
 */
export function byAge(
  purge: Described & {
    table: string
    /** SQL condition that the index serves. */
    expired: string
    /** SQL expression of the index order. */
    order: string
  },
): Purge {
  const { table, expired, order, ...described } = purge
  // By ctid, because a semi-join on the key may be planned as a scan of the whole table.
  const sql = `delete from ${table} where ctid = any(array(
    select ctid from ${table} where ${expired} order by ${order} limit ? for update skip locked))`
  return {
    ...described,
    everyMinutes: 1,
    async batch(trx, rows) {
      const { rowCount } = await trx.raw<{ rowCount: number }>(sql, [rows])
      return { deleted: rowCount, more: rowCount === rows }
    },
  }
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/**
 * Deletes rows of a table whose ids are UUIDv7, one organization after the other: rows with an id before the
 * organization's retention for which `ended` holds. A batch reads a bounded number of rows, and the next one continues
 * after them, so that old rows that must stay (a run that waits for months) are read once per pass.
 */
export function byRange(
  purge: Described & {
    table: string
    /** SQL interval of the organization `o`. */
    retention: string
    /** SQL condition on the row `t`. `:before` is the end of the retention. */
    ended: string
  },
): Purge {
  const { table, retention, ended, ...described } = purge
  const next = `
    select o.id as organization_id, now() - ${retention} as before from organizations o
    where o.id > :after and exists (
      select from ${table} t where t.organization_id = o.id and t.id < ${firstIdAt(`now() - ${retention}`)})
    order by o.id limit 1`
  const page = `
    with page as materialized (
      select t.id, (${ended}) as gone from ${table} t
      where t.organization_id = :organization_id and t.id > :id and t.id < ${firstIdAt(':before')}
      order by t.id limit :rows
    ), deleted as (
      delete from ${table} where ctid = any(array(
        select t.ctid from ${table} t
        where t.organization_id = :organization_id and t.id = any(array(select id from page where gone))
        for update skip locked))
      returning 1
    )
    select (select count(*) from deleted) as deleted, (select count(*) from page) as read,
      (select id from page order by id desc limit 1) as last`
  async function start(trx: Knex, after: string): Promise<Position | undefined> {
    const { rows } = await trx.raw<{ rows: Omit<Position, 'id'>[] }>(next, { after })
    return rows[0] && { ...rows[0], id: FIRST_ID }
  }
  return {
    ...described,
    everyMinutes: 60,
    async batch(trx, rows, position) {
      const from = position ?? (await start(trx, FIRST_ID))
      if (!from) return { deleted: 0, more: false }
      const { rows: found } = await trx.raw<{ rows: { deleted: number; read: number; last: string }[] }>(
        page,
        { ...from, rows } as never,
      )
      const { deleted, read, last } = found[0]!
      const following = read < rows ? await start(trx, from.organization_id) : { ...from, id: last }
      return { deleted, more: following !== undefined, position: following }
    },
  }
}

/** SQL: the first UUIDv7 of the millisecond of an SQL timestamp. */
export const firstIdAt = (timestamp: string): string =>
  `rpad(lpad(to_hex(floor(extract(epoch from cast(${timestamp} as timestamptz)) * 1000)::bigint), 12, '0'), 32, '0')::uuid`
