import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import type { Database } from '../../db/postgres/connect.ts'
import { PLANNED_ANEW } from '../../db/postgres/prepared.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'

/** A statement of the measured code. */
export interface Statement {
  sql: string
  bindings: unknown[]
  options: object
}

/**
 * The same database, which records every statement of every tenant transaction. A floor that replays them always sends
 * the same SQL, even after changes of the code.
 */
export function recording(db: Database, statements: Statement[]): Database & { stop(): void } {
  const inTenant = new AsyncLocalStorage<true>()
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const { text, values, name } = args[0] as { text?: string; values?: unknown[]; name?: string }
    // Notifications are sent after the transaction.
    if (text && inTenant.getStore() && !/^(begin|commit|savepoint|release)|pg_notify/i.test(text))
      statements.push({
        sql: text.replace(/\$\d+/g, '?'),
        bindings: values ?? [],
        options: name === undefined ? PLANNED_ANEW : {},
      })
    return Reflect.apply(query, this, args)
  } as typeof query
  return {
    ...db,
    tenant: (organizationId, actor, work) => inTenant.run(true, () => db.tenant(organizationId, actor, work)),
    /** Call it before measuring: tracing calls slows the whole process. */
    stop() {
      pg.Client.prototype.query = query
      inTenant.disable()
    },
  }
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** The values that replace recorded ones in a replay. */
export interface Replaced {
  /** By recorded id; any other id is replaced by a new one in each replay. */
  ids: { get(id: string): string | undefined }
  /**
   * A version in the recording, too high to be another number. It is replaced by the version of the first row, plus
   * one.
   */
  version?: number
}

/** Sends the statements in one transaction. @returns the rows of the largest result. */
export async function replay(
  tx: Tenant,
  statements: Statement[],
  { ids, version = Number.NaN }: Replaced,
): Promise<object[]> {
  const made = new Map<string, string>()
  const idOf = (id: string) => {
    const given = ids.get(id) ?? made.get(id) ?? uuidv7()
    made.set(id, given)
    return given
  }
  let found = version
  const swap = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(swap)
    if (value === version + 1) return found + 1
    if (typeof value !== 'string' || !value.includes('-')) return value
    return value.replace(UUID, idOf).replace(`"version":${version + 1}`, `"version":${found + 1}`)
  }
  let most: object[] = []
  for (const [i, { sql, bindings, options }] of statements.entries()) {
    if (i === statements.length - 1) tx.last()
    const { rows } = await tx.trx
      .raw<{ rows: { version?: number }[] }>(sql, bindings.map(swap) as never)
      .options(options)
    found = rows[0]?.version ?? found
    if (rows.length > most.length) most = rows
  }
  return most
}
