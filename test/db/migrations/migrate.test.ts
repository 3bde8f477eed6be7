import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { migrations } from '../../../db/migrations/index.ts'
import { isMigrated, migrate, requireKnownSchema } from '../../../db/migrations/migrate.ts'
import { freePort } from '../../../worker/dev/postgres/server.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'

describe('migrations', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('apply once, in order', async () => {
    const names = await db.system('agx_migrations').orderBy('id').pluck('name')
    assert.deepEqual(
      names,
      migrations.map(([name]) => name),
    )
    assert.deepEqual(await migrate(db.url), [])
    assert.equal(await isMigrated(db.system), true)
  })
})

describe('a database that a later version has migrated', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())
  const newest = migrations.at(-1)![0].slice(0, 4)
  const afterwards = async (name: string) => {
    await db.asOwner((client) =>
      client.query('insert into agx_migrations (name, batch, migration_time) values ($1, 9, now())', [name]),
    )
    return requireKnownSchema(db.system)
  }

  it('suits this one as long as the migrations only add', async () => {
    await afterwards('9001_more')
    await afterwards(`9002_after_${newest}_less`)
  })

  it('is refused once what this version uses may be removed', () =>
    assert.rejects(afterwards('9003_after_9001_less'), /unknown migrations: 9003_after_9001_less\)/))
})

describe('a migration that needs a table which a long transaction uses', () => {
  it('fails after seconds, so that others do not wait behind it', async () => {
    const db = await createTestDatabase()
    const last = migrations.at(-1)![0]
    try {
      await db.asOwner(async (holder) => {
        // Makes the last migration pending again.
        await holder.query('delete from agx_migrations where name = $1', [last])
        await holder.query('begin; lock table agx_migrations in access exclusive mode')
        await assert.rejects(migrate(db.url), /lock timeout/)
        await holder.query('rollback')
      })
    } finally {
      await db.drop()
    }
  })
})

describe('a database of another version', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
    await db.asOwner((client) =>
      client.query(
        "insert into agx_migrations (name, batch, migration_time) values ('0001_foundation', 1, now())",
      ),
    )
  })
  after(() => db.drop())

  let child: ChildProcess | undefined
  // A process whose test timed out would wait for its database for ever.
  afterEach(() => child?.kill('SIGKILL'))

  async function run(file: string): Promise<{ code: number; errors: string }> {
    child = spawn(process.execPath, ['worker/run.mjs', file], {
      env: {
        ...process.env,
        DATABASE_URL: db.url,
        DATA_DIR: temporaryFolder(),
        TEMPORAL_ADDRESS: process.env.TEST_TEMPORAL_ADDRESS,
        SECRETS_KEY: Buffer.alloc(32).toString('base64'),
        PORT: String(await freePort()),
        WORKER_PORT: String(await freePort()),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let errors = ''
    child.stderr!.on('data', (chunk) => {
      errors += chunk
    })
    const [code] = await once(child, 'close')
    return { code, errors }
  }

  for (const [part, file] of Object.entries({
    'npm start': 'worker/dev/start.ts',
    'npm run migrate': 'worker/commands/migrate.ts',
    'npm run api': 'api/main.ts',
    'npm run worker': 'worker/main.ts',
  }))
    it(`is refused by ${part} in one line that says what to do`, async () => {
      const { code, errors } = await run(file)
      assert.equal(code, 1)
      assert.match(
        errors,
        /^(agx (api|worker): )?the database holds the schema of another version of agx \(unknown migrations: 0001_foundation\): .+ use an empty database .+\n$/,
      )
    })
})
