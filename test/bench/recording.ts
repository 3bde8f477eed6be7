import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import type { Database } from '../../db/postgres/connect.ts'
import { PLANNED_ANEW } from '../../db/postgres/dialect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'

/** A statement as the code under measurement sent it. */
export interface Statement {
  sql: string
  bindings: unknown[]
  options: object
}

/**
 * The same database, writing down every statement of every tenant transaction: a floor that sends these again does
 * the same SQL by construction, and goes on doing it when the code changes.
 */
export function recording(db: Database, statements: Statement[]): Database & { stop(): void } {
  const inTenant = new AsyncLocalStorage<true>()
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const { text, values, name } = args[0] as { text?: string; values?: unknown[]; name?: string }
    // Notifications follow the transaction.
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
    /** Before anything is measured: following who calls whom slows the whole process. */
    stop() {
      pg.Client.prototype.query = query
      inTenant.disable()
    },
  }
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** What a replay puts in the place of recorded values. */
export interface Replaced {
  /** By recorded id; what is not here becomes a fresh one for each replay. */
  ids: { get(id: string): string | undefined }
  /** A version in the recording, high enough to be no other number; what the first answer's row has, and one more. */
  version?: number
}

/** Sends the statements in one transaction. @returns the rows of the answer that has most. */
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
  const swap = (value: unknown) => {
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
