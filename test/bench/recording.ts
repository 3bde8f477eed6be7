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
  return {
    ...db,
    tenant: (organizationId, actor, work) =>
      db.tenant(organizationId, actor, (tx) => {
        tx.trx.on('query', ({ sql, bindings }: Statement) => {
          if (!/^(begin|commit|savepoint|release)/i.test(sql)) statements.push({ sql, bindings })
        })
        return work(tx)
      }),
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
