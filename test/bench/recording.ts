import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import type { Database } from '../../db/connect.ts'
import type { Tenant } from '../../db/tenancy.ts'

/** A statement as the code under measurement sent it. */
export interface Statement {
  sql: string
  bindings: unknown[]
}

/**
 * The same database, writing down every statement of every tenant transaction: a floor that sends these again does
 * the same SQL by construction, and goes on doing it when the code changes.
 */
export function recording(db: Database, statements: Statement[]): Database {
  const inTenant = new AsyncLocalStorage<true>()
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const { text, values } = args[0] as { text?: string; values?: unknown[] }
    // Notifications follow the transaction.
    if (text && inTenant.getStore() && !/^(begin|commit|savepoint|release)|pg_notify/i.test(text))
      statements.push({ sql: text, bindings: values ?? [] })
    return Reflect.apply(query, this, args)
  } as typeof query
  return {
    ...db,
    tenant: (organizationId, actor, work) => inTenant.run(true, () => db.tenant(organizationId, actor, work)),
  }
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** Sends the statements in one transaction, with a fresh id in place of each but those in `keep`. */
export async function replay(
  tx: Tenant,
  statements: Statement[],
  keep: ReadonlySet<string>,
): Promise<unknown> {
  const ids = new Map<string, string>()
  const fresh = (id: string) => {
    if (keep.has(id)) return id
    const known = ids.get(id) ?? uuidv7()
    ids.set(id, known)
    return known
  }
  let last: unknown
  for (const { sql, bindings } of statements) {
    const values = bindings.map((value) => (typeof value === 'string' ? value.replace(UUID, fresh) : value))
    last = await tx.trx.raw(sql.replace(/\$\d+/g, '?'), values as never)
  }
  return last
}
