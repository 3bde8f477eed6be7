import knex from 'knex'
import type pg from 'pg'
import { ConfigError } from '../model/config-error.ts'
import { ensureLogins } from '../postgres/logins.ts'
import type { DatabaseUrls } from '../postgres/roles.ts'
import type { System } from '../postgres/tenancy.ts'
import { migrations } from './index.ts'

const NAMES = migrations.map(([name]) => name)

const migrationSource = {
  getMigrations: async () => NAMES,
  getMigrationName: (name: string) => name,
  getMigration: async (name: string) => ({
    ...migrations.find(([candidate]) => candidate === name)![1],
    // Knex requires it.
    async down() {
      throw new Error('a migration cannot be undone: restore a backup')
    },
  }),
}

/**
 * Lock timeout. While a statement waits for a table that a long transaction uses, all other statements wait behind it:
 * it fails instead, and `npm run migrate` is repeated.
 */
const LOCK_MS = 5_000

/** Knex also prints errors that it throws. */
const QUIET = { warn() {}, error() {} }

/**
 * Migrates the database at `url` to the newest schema, and creates the logins of the processes. Needs a role that owns
 * the database and, the first time, may create roles. Safe to run concurrently: an advisory lock serialises the runs.
 * @returns the names of the applied migrations. Throws the ConfigError of `requireKnownSchema`.
 */
export async function migrate(url: string, logins: DatabaseUrls = { url }): Promise<string[]> {
  const afterCreate = (connection: pg.Client, done: (error: Error | null, connection: pg.Client) => void) =>
    void connection.query(`set lock_timeout = ${LOCK_MS}`, (error) => done(error, connection))
  const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2, afterCreate }, log: QUIET })
  try {
    const applied = await db.transaction(async (lock) => {
      await lock.raw('set local lock_timeout = 0')
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
 * Throws ConfigError if the database has unknown migrations with which this code may not work: a statement of this
 * version could fail or, worse, write rows that other versions cannot read. Later migrations are compatible, because
 * they only add; except those that remove what is unused since a migration that this code does not know either
 * (`db/migrations/index.ts`).
 */
export async function requireKnownSchema(system: System): Promise<void> {
  const unknown = (await appliedMigrations(system)).filter((name) => !NAMES.includes(name) && !suits(name))
  if (unknown.length > 0)
    throw new ConfigError(
      `the database holds the schema of another version of agx (unknown migrations: ${unknown.join(', ')}): ` +
        'run the version that created it, or use an empty database (another DATABASE_URL, or another DATA_DIR)',
    )
}

/** Whether this code works on a schema with a later version's migration. */
function suits(name: string): boolean {
  const [, number, after = '0000'] = /^(\d{4})_(?:after_(\d{4})_)?/.exec(name) ?? []
  const newest = NAMES.at(-1)!.slice(0, 4)
  return number !== undefined && number > newest && after <= newest
}

/** The names of the applied migrations; empty for a new database. */
async function appliedMigrations(system: System): Promise<string[]> {
  const { rows } = await system.raw<{ rows: { exists: boolean }[] }>(
    "select to_regclass('public.agx_migrations') is not null as exists",
  )
  if (!rows[0]!.exists) return []
  return system('agx_migrations').orderBy('id').pluck('name')
}
