import assert from 'node:assert/strict'
import type pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { fillEveryTable, otherTables, type TenantTable, tenantTables } from '../../support/every-table.ts'

/** The tables without organization_id, each with the reason. Every other table must have a policy. */
const WITHOUT_ORGANIZATION: Record<string, string> = {
  users:
    'a user may belong to several organizations; a policy shows agx_app the id, name and email of members',
  agx_migrations:
    'the applied migrations, which a process compares with those it knows; agx_app only reads it',
  pool_workers: 'one row per worker of a pool; agx_app has no access',
  oauth_clients: 'any program may register itself, before anybody connects it; agx_app has no access',
  relays: 'one row per worker; agx_app has no access',
  sweep_state: 'one row that the workers share; agx_app has no access',
  agx_migrations_lock: "Knex's own; no role of ours may read it",
  witnesses: 'one row per task queue; only agx_system may read it',
  database_ids: 'the ids of the database itself; only agx_system may read it',
  sign_ups: 'neither an account nor an organization yet; agx_app has no access',
  temporal_server: 'one row, the Temporal namespace of the whole database; only agx_system may read it',
}

/** The tables whose rows agx_app may neither change nor delete, not even those of its own organization. */
const APPEND_ONLY = ['audit_log']

/** SQLSTATE of a refused privilege, and of a row that violates a policy. */
const REFUSED = '42501'

describe('row-level security', () => {
  let db: TestDatabase
  let tables: TenantTable[]
  let mine: string
  let other: string
  before(async () => {
    db = await createTestDatabase()
    await db.asOwner(async (client) => {
      tables = await tenantTables(client)
      mine = await fillEveryTable(client)
      other = await fillEveryTable(client)
    })
  })
  after(() => db.drop())

  /** Runs `work` as agx_app in a transaction of an organization, or of none, and rolls it back. */
  const asApp = <T>(
    organizationId: string | undefined,
    work: (client: pg.Client) => Promise<T>,
  ): Promise<T> =>
    db.asOwner(async (client) => {
      await client.query('begin; set local role agx_app')
      await client.query("select set_config('app.organization_id', $1, true)", [organizationId ?? ''])
      try {
        return await work(client)
      } finally {
        await client.query('rollback')
      }
    })
  const everyTable = async (check: (table: TenantTable) => Promise<void>) => {
    for (const table of tables) await check(table)
  }
  const count = async (client: pg.Client, table: TenantTable, organizationId: string) => {
    const { rows } = await client.query(
      `select count(*)::integer as count from ${table.name} where ${table.organizationColumn} = $1`,
      [organizationId],
    )
    return rows[0].count as number
  }
  const countAll = async (client: pg.Client, table: TenantTable) => {
    const { rows } = await client.query(`select count(*)::integer as count from ${table.name}`)
    return rows[0].count as number
  }
  /** Asserts that PostgreSQL refuses the statement because of a privilege or a policy; the transaction continues. */
  const refused = async (client: pg.Client, statement: string, values: unknown[]) => {
    await client.query('savepoint refused')
    await assert.rejects(client.query(statement, values), (error: { code?: string }) => {
      assert.equal(error.code, REFUSED, `${statement}: ${error}`)
      return true
    })
    await client.query('rollback to savepoint refused')
  }

  it('has tables to look at, each with a row of both organizations', async () => {
    assert.ok(tables.filter((table) => !table.isView).length > 30)
    assert.ok(tables.filter((table) => table.isView).length >= 6)
    await db.asOwner((client) =>
      everyTable(async (table) => {
        if (table.isView) return
        assert.equal(await count(client, table, mine), 1, table.name)
        assert.equal(await count(client, table, other), 1, table.name)
      }),
    )
  })

  it('is enabled and forced on every table with organization_id', () => {
    const unprotected = tables.filter((table) => !table.isView && !table.isProtected)
    assert.deepEqual(
      unprotected.map(({ name }) => name),
      [],
    )
  })

  it('has no exceptions but those with a reason', async () => {
    assert.deepEqual(await db.asOwner(otherTables), Object.keys(WITHOUT_ORGANIZATION).sort())
    await asApp(mine, async (client) => {
      assert.equal((await client.query('select id, name from users')).rowCount, 1)
      await client.query('select * from agx_migrations')
    })
    for (const statement of [
      'select password_hash from users',
      'update users set name = name',
      'delete from users',
      'delete from agx_migrations',
      'select * from agx_migrations_lock',
      'select * from temporal_server',
      'select * from sweep_state',
      'select * from relays',
      'select * from witnesses',
      'select * from database_ids',
      'select * from pool_workers',
      `update organizations set pools = '{dmz}'`,
      `update organizations set limits = '{}'`,
      'select * from sign_ups',
      'select * from oauth_clients',
    ])
      await assert.rejects(
        asApp(mine, (client) => client.query(statement)),
        { code: REFUSED },
      )
  })

  it('shows an organization its own rows and no others', () =>
    asApp(mine, (client) =>
      everyTable(async (table) => {
        assert.equal(await countAll(client, table), 1, table.name)
        assert.equal(await count(client, table, mine), 1, table.name)
      }),
    ))

  for (const [who, organizationId] of [
    ['no organization', () => undefined],
    ['an unknown organization', uuidv7],
    ['another organization', () => other],
  ] as const) {
    it(`shows ${who} none of them`, () =>
      asApp(organizationId(), (client) =>
        everyTable(async (table) => {
          assert.equal(await count(client, table, mine), 0, table.name)
        }),
      ))

    it(`lets ${who} change and delete none of them`, () =>
      asApp(organizationId(), (client) =>
        everyTable(async ({ name, isView, organizationColumn: column }) => {
          // Only some columns of an organization may be written, by itself.
          const written = name === 'organizations' ? 'name' : column
          for (const change of [`update ${name} set ${written} = ${written}`, `delete from ${name}`]) {
            const statement = `${change} where ${column} = $1`
            if (isView || APPEND_ONLY.includes(name)) await refused(client, statement, [mine])
            else assert.equal((await client.query(statement, [mine])).rowCount, 0, statement)
          }
        }),
      ))

    it(`lets ${who} insert none`, async () => {
      const copies = await db.asOwner(async (client) => {
        const found = new Map<string, unknown>()
        await everyTable(async ({ name, organizationColumn: column }) => {
          const { rows } = await client.query(
            `select to_jsonb(t) as row from ${name} t where ${column} = $1`,
            [mine],
          )
          found.set(name, rows[0]?.row ?? { organization_id: mine })
        })
        return found
      })
      // PostgreSQL checks policies before keys: a copy of an existing row violates the policy first.
      await asApp(organizationId(), (client) =>
        everyTable(({ name, isView, organizationColumn, columns }) => {
          const list = isView ? organizationColumn : columns.join(', ')
          return refused(
            client,
            `insert into ${name} (${list}) select ${list} from jsonb_populate_record(null::${name}, $1)`,
            [JSON.stringify(copies.get(name))],
          )
        }),
      )
    })
  }

  it('lets no organization give a row of its own to another', () =>
    asApp(mine, (client) =>
      everyTable(async ({ name, isView }) => {
        if (isView || name === 'organizations') return
        // APPEND_ONLY tables refuse by the privilege, others by the policy.
        await refused(client, `update ${name} set organization_id = $1`, [other])
      }),
    ))
})

/** The tables whose rows may outlive their organization, each with the reason. */
const OUTLIVES: Record<string, string> = {
  deleted_files: 'each leads to a content that is to be deleted; deleted with it',
  account_mails: 'those about an account have no organization; purged after 30 days',
  mail_suppressions: 'those of a mailbox that does not exist have no organization',
  password_resets: 'those that a user asked for have no organization; purged when they expire',
  limit_windows:
    'also counts attempts to sign in, which have no organization; rows go when their window is over',
}

describe('deleting an organization', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('removes every row of it, and none of another', async () => {
    const [gone, kept] = await db.asOwner(async (client) => [
      await fillEveryTable(client),
      await fillEveryTable(client),
    ])
    assert.equal(await db.system('organizations').where({ id: gone }).delete(), 1)
    await db.asOwner(async (client) => {
      for (const { name, isView, organizationColumn: column } of await tenantTables(client)) {
        if (isView || name in OUTLIVES) continue
        const { rows } = await client.query(`select ${column} as id from ${name}`)
        assert.deepEqual(rows, [{ id: kept }], name)
      }
    })
  })
})
