import type { System } from './tenancy.ts'

/**
 * The identity of a database, which neither a dump nor a copy of it has: the id that initdb gave to the cluster, and the
 * oid of the database. A physical standby has the same one, so a failover changes nothing.
 */
export async function readDatabaseId(system: System): Promise<string> {
  const { rows } = await system.raw<{ rows: { id: string }[] }>(
    `select system_identifier || '/' || d.oid as id
     from pg_control_system(), pg_database d where d.datname = current_database()`,
  )
  return rows[0]!.id
}

const known = new WeakMap<System, Promise<string>>()

/** As `readDatabaseId`, once per process. */
export function databaseId(system: System): Promise<string> {
  let id = known.get(system)
  if (!id) {
    id = readDatabaseId(system)
    known.set(system, id)
    id.catch(() => known.delete(system))
  }
  return id
}
