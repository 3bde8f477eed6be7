import pg from 'pg'
import { ConfigError } from '../model/config-error.ts'
import { type DatabaseRole, type DatabaseUrls, loginUrls } from './roles.ts'
import { scramVerifier } from './scram.ts'
import { sqlState } from './sql-state.ts'
import { tryConnect } from './try-connect.ts'

/**
 * The logins of api and worker: one for each role, and nothing more, so that an injected RESET ROLE or SET ROLE does not
 * leave row-level security. Migrations use the owner of the tables.
 */

const TIMEOUT_MS = 10_000
/** SQLSTATE: wrong password, login that does not exist or may not log in. */
const REFUSED_LOGINS = ['28P01', '28000']

/**
 * Makes the logins that the URLs name, with their passwords, as the owner. Leaves alone what can log in already, such as
 * logins that an operator has created.
 */
export async function ensureLogins(ownerUrl: string, urls: DatabaseUrls): Promise<void> {
  const logins = loginUrls(urls)
  if (logins.length === 0) return
  const owner = new pg.Client({ connectionString: ownerUrl })
  await owner.connect()
  try {
    // Roles belong to the whole server, but the lock only to this database: PostgreSQL refuses concurrent changes.
    await owner.query("select pg_advisory_lock(hashtext('agx logins'))")
    for (const [role, url] of logins) await ensureLogin(owner, role, url)
  } finally {
    await owner.end()
  }
}

async function ensureLogin(owner: pg.Client, role: DatabaseRole, url: string): Promise<void> {
  const { user, password } = credentialsOf(url)
  const name = pg.escapeIdentifier(user)
  const { rowCount: exists } = await owner.query('select from pg_roles where rolname = $1', [user])
  if (!exists) await owner.query(`create role ${name}`)
  if (user !== role) await owner.query(`grant ${role} to ${name}`)
  if (await canLogIn(url)) return
  const verifier = password === '' ? '' : ` password ${pg.escapeLiteral(scramVerifier(password))}`
  await owner.query(`alter role ${name} login${verifier}`)
  await tryConnect(url, TIMEOUT_MS)
}

async function canLogIn(url: string): Promise<boolean> {
  try {
    await tryConnect(url, TIMEOUT_MS)
    return true
  } catch (error) {
    if (REFUSED_LOGINS.includes(sqlState(error) ?? '')) return false
    throw error
  }
}

function credentialsOf(url: string): { user: string; password: string } {
  const { username, password } = new URL(url)
  if (username === '') throw new ConfigError('DATABASE_URL and DATABASE_SYSTEM_URL must name a user')
  return { user: decodeURIComponent(username), password: decodeURIComponent(password) }
}

/** Throws ConfigError unless each URL logs in as its role, and as nothing that could leave row-level security. */
export async function requirePlainLogins(urls: DatabaseUrls): Promise<void> {
  for (const [role, url] of loginUrls(urls)) {
    const variable = role === 'agx_app' ? 'DATABASE_URL' : 'DATABASE_SYSTEM_URL'
    const problem = await problemOf(role, url)
    if (problem)
      throw new ConfigError(
        `${variable} ${problem}: give the plain login of ${role}, which \`npm run migrate\` creates (docs/deployment.md, "Database logins")`,
      )
  }
}

async function problemOf(role: DatabaseRole, url: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: TIMEOUT_MS })
  try {
    await client.connect()
    const { rows } = await client.query<Record<'powerful' | 'owner' | 'member' | 'other', boolean>>(
      PRIVILEGES,
      [role, role === 'agx_app' ? 'agx_system' : 'agx_app'],
    )
    const { powerful, owner, member, other } = rows[0]!
    if (powerful) return 'logs in as a superuser, or with BYPASSRLS or CREATEROLE'
    if (owner) return 'logs in as an owner of the tables'
    if (!member) return `logs in without the role ${role}`
    // The system role sees everything anyway.
    return other && role === 'agx_app' ? 'logs in with the role agx_system too' : undefined
  } finally {
    await client.end().catch(() => {})
  }
}

/** Roles that do not exist yet, in an empty database, count as not granted. */
const PRIVILEGES = `
  select exists (select from pg_roles r where (r.rolsuper or r.rolbypassrls or r.rolcreaterole)
                 and pg_has_role(session_user, r.oid, 'MEMBER')) as powerful,
    exists (select from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
            and pg_has_role(session_user, c.relowner, 'MEMBER')) as owner,
    exists (select from pg_roles r where r.rolname = $1 and pg_has_role(session_user, r.oid, 'USAGE')) as member,
    exists (select from pg_roles r where r.rolname = $2 and pg_has_role(session_user, r.oid, 'MEMBER')) as other`
