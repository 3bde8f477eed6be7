import knex from 'knex'
import { ConfigError } from '../config.ts'
import { migrations } from '../migrations/index.ts'
import { ensureLogins } from './logins.ts'
import type { DatabaseUrls } from './roles.ts'
import type { System } from './tenancy.ts'

const NAMES = migrations.map(([name]) => name)

const migrationSource = {
  getMigrations: async () => NAMES,
  getMigrationName: (name: string) => name,
  getMigration: async (name: string) => ({
    ...migrations.find(([candidate]) => candidate === name)![1],
    // Knex asks for it.
    async down() {
      throw new Error('a migration cannot be undone: restore a backup')
    },
  }),
}

/** Knex prints errors that it also throws. */
const QUIET = { warn() {}, error() {} }

/**
 * Migrates the database at `url` to the newest schema, and creates the logins of the processes. Needs a role that owns the database and, the first time, may
 * create roles. Safe to run concurrently: an advisory lock serializes the runs.
 * @returns the names of the applied migrations. Throws ConfigError as `requireKnownSchema` does.
 */
export async function migrate(url: string, logins: DatabaseUrls = { url }): Promise<string[]> {
  const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 }, log: QUIET })
  try {
    const applied = await db.transaction(async (lock) => {
      await lock.raw("select pg_advisory_xact_lock(hashtext('agx migrate'))")
      await requireKnownSchema(db)
      const [, applied] = await db.migrate.latest({ migrationSource, tableName: 'agx_migrations' })
      await db.raw('grant select on agx_migrations to agx_app, agx_system')
      return applied as string[]
    })
    await ensureLogins(url, logins)
    return applied
  } finally {
    await db.destroy()
  }
}

/** Whether the database has every migration that this code knows. */
export async function isMigrated(system: System): Promise<boolean> {
  const applied = new Set(await appliedMigrations(system))
  return NAMES.every((name) => applied.has(name))
}

/**
 * Throws ConfigError where the database has migrations that this code does not know: it holds the schema of another
 * version, and a statement of this one may fail or, worse, write what the other cannot read.
 */
export async function requireKnownSchema(system: System): Promise<void> {
  const unknown = (await appliedMigrations(system)).filter((name) => !NAMES.includes(name))
  if (unknown.length > 0)
    throw new ConfigError(
      `the database holds the schema of another version of agx (unknown migrations: ${unknown.join(', ')}): ` +
        'run the version that created it, or use an empty database (another DATABASE_URL, or another DATA_DIR)',
    )
}

/** None where the database is new. */
async function appliedMigrations(system: System): Promise<string[]> {
  const { rows } = await system.raw<{ rows: { exists: boolean }[] }>(
    "select to_regclass('public.agx_migrations') is not null as exists",
  )
  if (!rows[0]!.exists) return []
  return system('agx_migrations').orderBy('id').pluck('name')
}
