import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import { migrate } from '../../db/migrations/migrate.ts'
import type { MemberRole } from '../../db/model/access/roles.ts'
import type { Actor } from '../../db/model/actor.ts'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { searchTables } from './planted.ts'

/**
 * A database for the calling test file, cloned from a migrated template in tens of milliseconds. Call `drop()` in
 * `after`.
 */
export interface TestDatabase extends Database {
  /** A connection as the role that owns the tables, a superuser: row-level security does not apply to it. */
  asOwner<T>(work: (client: pg.Client) => Promise<T>): Promise<T>
  drop(): Promise<void>
}

export async function createTestDatabase(): Promise<TestDatabase> {
  template ??= ensureTemplate()
  const name = `agx_test_${randomBytes(6).toString('hex')}`
  const source = await template
  await admin((client) => client.query(`create database ${name} template ${source} strategy file_copy`))
  const db = connect({ url: urlOf(name), poolSize: 8, applicationName: 'agx test' })
  return {
    ...db,
    asOwner: (work) => connected(urlOf(name), work),
    async drop() {
      await connected(urlOf(name), searchTables)
      await db.close()
      await admin((client) => client.query(`drop database if exists ${name} with (force)`))
      rmSync(filesOf(db), { recursive: true, force: true })
    },
  }
}

/** The folder of the contents of files, which an API and a worker on the database share. */
export const filesOf = ({ url }: Pick<Database, 'url'>): string =>
  join(tmpdir(), `agx-files-${new URL(url).pathname.slice(1)}`)

export const testActor: Actor = { type: 'system', id: null }

/** Creates an organization as sign-up does. @returns its id. */
export async function createOrganization(
  db: Database,
  values: { name?: string; plan?: string; settings?: object; limits?: object; is_operators?: boolean } = {},
): Promise<string> {
  const id = uuidv7()
  await db.system('organizations').insert({
    id,
    name: values.name ?? 'Test',
    plan: values.plan ?? 'enterprise',
    settings: JSON.stringify(values.settings ?? {}),
    limits: JSON.stringify(values.limits ?? {}),
    is_operators: values.is_operators ?? false,
  })
  return id
}

/** Creates a member of the organization, who has no password. @returns the user's id. */
export async function createMember(
  db: Database,
  organizationId: string,
  name = 'Grace',
  role: MemberRole = 'member',
): Promise<string> {
  const id = uuidv7()
  await db.system('users').insert({ id, name, email: `${id}@example.com`, password_hash: 'none' })
  await db.system('memberships').insert({ organization_id: organizationId, user_id: id, role })
  return id
}

/** The server that `global.ts` started, or the one that TEST_DATABASE_URL names (its role must be a superuser). */
function serverUrl(): string {
  const url = process.env.TEST_DATABASE_URL
  if (!url)
    throw new Error(
      'TEST_DATABASE_URL is not set: run tests through mocha, whose global set-up starts PostgreSQL',
    )
  return url
}

function urlOf(database: string): string {
  const url = new URL(serverUrl())
  url.pathname = `/${database}`
  return url.href
}

/** The URL of a database with a login that PostgreSQL refuses. */
export function refusedUrl(database: string): string {
  const url = new URL(database)
  Object.assign(url, { username: 'nobody_of_this_name', password: 'wrong' })
  return url.href
}

const admin = <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => connected(serverUrl(), work)

/** Works with a connection of its own. */
export async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  // Where a test has failed, its server may end before the client.
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** The template of this process's databases. */
let template: Promise<string> | undefined

/** Created once per state of the migrations, so that an edited migration never uses an old template. */
async function ensureTemplate(): Promise<string> {
  const folder = new URL('../../db/migrations/', import.meta.url)
  const hash = createHash('sha1')
  for (const file of readdirSync(folder).sort()) hash.update(readFileSync(new URL(file, folder)))
  const name = `agx_template_${hash.digest('hex').slice(0, 12)}`
  await admin(async (client) => {
    await client.query("select pg_advisory_lock(hashtext('agx test template'))")
    const { rowCount } = await client.query('select from pg_database where datname = $1', [name])
    if (rowCount) return
    await client.query(`drop database if exists ${name}_new with (force)`)
    await client.query(`create database ${name}_new`)
    await migrate(urlOf(`${name}_new`))
    await client.query(`alter database ${name}_new rename to ${name}`)
  })
  return name
}
