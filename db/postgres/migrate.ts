import knex from 'knex'
import { migrations } from '../migrations/index.ts'

const migrationSource = {
  getMigrations: async () => migrations.map(([name]) => name),
  getMigrationName: (name: string) => name,
  getMigration: async (name: string) => migrations.find(([candidate]) => candidate === name)![1],
}

/** Knex prints errors that it also throws. */
const QUIET = { warn() {}, error() {} }

/**
 * Migrates the database at `url` to the newest schema. Needs a role that owns the database and, the first time, may
 * create roles. Safe to run concurrently: an advisory lock serializes the runs.
 * @returns the names of the applied migrations.
 */
export async function migrate(url: string): Promise<string[]> {
  const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 }, log: QUIET })
  try {
    return await db.transaction(async (lock) => {
      await lock.raw("select pg_advisory_xact_lock(hashtext('agx migrate'))")
      const [, applied] = await db.migrate.latest({ migrationSource, tableName: 'agx_migrations' })
      await db.raw('grant select on agx_migrations to agx_app, agx_system')
      return applied as string[]
    })
  } finally {
    await db.destroy()
  }
}

/** Whether the database has every migration that this code knows. */
export async function isMigrated(system: knex.Knex): Promise<boolean> {
  const rows = await system('agx_migrations').select('name')
  const applied = new Set(rows.map((row: { name: string }) => row.name))
  return migrations.every(([name]) => applied.has(name))
}
