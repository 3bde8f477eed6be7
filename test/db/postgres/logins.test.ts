import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { bootstrap } from '../../../db/access/bootstrap.ts'
import { migrate } from '../../../db/migrations/migrate.ts'
import { connect, type Database } from '../../../db/postgres/connect.ts'
import { requirePlainLogins } from '../../../db/postgres/logins.ts'
import { databaseUrls, readVariables, sharedVariables } from '../../../db/process/config.ts'
import { createOrganization, createTestDatabase, testActor } from '../../support/database.ts'
import { startProcess } from '../../support/process.ts'

/** SQLSTATE of a refused privilege. */
const REFUSED = '42501'

/**
 * As on a managed PostgreSQL: an owner that is not a superuser but may create roles, and logins with the operator's
 * names.
 */
describe('the database logins', () => {
  const id = randomBytes(4).toString('hex')
  const server = () => process.env.TEST_DATABASE_URL!
  const database = `agx_test_logins_${id}`
  const urlOf = (user: string, password = `p@ss/${user}`) => {
    const url = new URL(server())
    Object.assign(url, { username: user, pathname: `/${database}` })
    url.password = encodeURIComponent(password)
    return url.href
  }
  const [owner, app, system] = ['owner', 'app', 'system'].map((name) => `${name}_${id}`) as [
    string,
    string,
    string,
  ]
  let urls: { url: string; systemUrl: string }
  let env: Record<string, string>
  let db: Database
  let mine: string
  let other: string

  async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }
  const asAdmin = (...statements: string[]) =>
    connected(server(), async (client) => {
      for (const statement of statements) await client.query(statement)
    })

  before(async () => {
    urls = { url: urlOf(app), systemUrl: urlOf(system) }
    env = { DATABASE_SYSTEM_URL: urls.systemUrl }
    // Roles belong to the whole server: other test databases have created them, or this one does.
    await (await createTestDatabase()).drop()
    await asAdmin(
      `create role ${owner} login createrole password '${`p@ss/${owner}`}'`,
      `grant agx_app, agx_system to ${owner} with admin option`,
      `create database ${database} owner ${owner}`,
    )
    assert.ok((await migrate(urlOf(owner), urls)).length > 0)
    db = connect({ ...urls, poolSize: 4 })
    mine = await createOrganization(db)
    other = await createOrganization(db)
  })
  after(async () => {
    await db?.close()
    await asAdmin(
      `drop database if exists ${database} with (force)`,
      `drop role if exists ${app}, ${system}`,
      `drop role if exists ${owner}`,
    )
  })

  it('are created by migrations, once', async () => {
    assert.deepEqual(await migrate(urlOf(owner), urls), [])
    await requirePlainLogins(urls)
    await assert.rejects(
      connected(urlOf(app, 'wrong'), async () => {}),
      /password authentication failed/,
    )
  })

  it('show the application one organization, also after an injected RESET ROLE or SET ROLE', async () => {
    const seen = (injected: string) =>
      db.tenant(mine, testActor, async ({ trx }) => {
        await trx.raw(injected)
        const { rows } = await trx.raw('select id from organizations')
        return rows.map((row: { id: string }) => row.id)
      })
    for (const injected of ['select 1', 'reset role', 'set session authorization default', 'set role none'])
      assert.deepEqual(await seen(injected), [mine], injected)
    for (const injected of [
      'set role agx_system',
      `set role ${system}`,
      `set role ${owner}`,
      'set role postgres',
      'alter table organizations disable row level security',
      'alter table organizations no force row level security',
      'drop policy tenant on organizations',
      `alter role ${app} bypassrls`,
      `grant agx_system to ${app}`,
    ])
      await assert.rejects(seen(injected), { code: REFUSED }, injected)
    assert.equal((await db.system('organizations').whereIn('id', [mine, other])).length, 2)
  })

  it('are all that api and worker need', async () => {
    await bootstrap(urls, {})
    for (const name of ['api', 'worker'] as const) {
      const started = await startProcess(name, { databaseUrl: urls.url, env })
      assert.equal((await fetch(`${started.url}/readyz`)).status, 200)
      await started.stop()
    }
  })

  it('are refused at the start if they can do more', async () => {
    const both = `both_${id}`
    await asAdmin(`create role ${both} login password 'x'`, `grant agx_app, agx_system to ${both}`)
    try {
      for (const [given, message] of [
        [{ ...urls, url: server() }, /^DATABASE_URL logs in as a superuser/],
        [{ ...urls, systemUrl: server() }, /^DATABASE_SYSTEM_URL logs in as a superuser/],
        [{ ...urls, url: urlOf(owner) }, /^DATABASE_URL logs in as a superuser, or with .* CREATEROLE/],
        [{ ...urls, url: urlOf(both, 'x') }, /^DATABASE_URL logs in with the role agx_system too/],
        [{ ...urls, url: urls.systemUrl }, /^DATABASE_URL logs in without the role agx_app/],
        [{ ...urls, systemUrl: urls.url }, /^DATABASE_SYSTEM_URL logs in without the role agx_system/],
      ] as const)
        await assert.rejects(requirePlainLogins(given), { name: 'ConfigError', message })
      await asAdmin(`alter role ${owner} nocreaterole`)
      await assert.rejects(requirePlainLogins({ ...urls, url: urlOf(owner) }), /logs in as an owner/)
      await assert.rejects(
        startProcess('api', { databaseUrl: server(), env }),
        /agx api: DATABASE_URL logs in as a superuser/,
      )
    } finally {
      await asAdmin(`drop role ${both}`, `alter role ${owner} createrole`)
    }
  })

  it('must be two in production, unless one is allowed', () => {
    const settings = (more: Record<string, string>) =>
      databaseUrls(
        readVariables(sharedVariables, {
          NODE_ENV: 'production',
          DATABASE_URL: urls.url,
          SECRETS_KEY: Buffer.alloc(32).toString('base64'),
          ...more,
        }),
      )
    assert.throws(() => settings({}), /^ConfigError: DATABASE_SYSTEM_URL is missing/)
    assert.deepEqual(settings(env), urls)
    assert.equal(settings({ ALLOW_SINGLE_DATABASE_LOGIN: 'true' }).systemUrl, undefined)
    assert.equal(settings({ NODE_ENV: 'development' }).systemUrl, undefined)
  })
})
