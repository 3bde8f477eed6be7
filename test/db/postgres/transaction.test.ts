import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import type { Knex } from 'knex'
import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import { connect } from '../../../db/postgres/connect.ts'
import { savepoint } from '../../../db/postgres/tenancy.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { startProxy } from '../../support/proxy.ts'
import { recordStatements } from '../../support/statements.ts'

describe('transactions of one organization', () => {
  let db: TestDatabase
  let organization: string
  before(async () => {
    db = await createTestDatabase()
    organization = await createOrganization(db)
  })
  after(() => db.drop())

  const insert = (trx: Knex, name: string) =>
    trx('events').insert({ organization_id: organization, id: uuidv7(), name, data: '{}', actor: testActor })
  const count = async (name: string) => (await db.system('events').where({ name })).length

  it('are atomic', async () => {
    await db.tenant(organization, testActor, ({ trx }) => insert(trx, 'test.kept'))
    await assert.rejects(
      db.tenant(organization, testActor, async ({ trx }) => {
        await insert(trx, 'test.lost')
        throw new Error('after it')
      }),
      /after it/,
    )
    assert.deepEqual([await count('test.kept'), await count('test.lost')], [1, 0])
  })

  it('are retried after a deadlock', async () => {
    const [one, two] = [uuidv7(), uuidv7()]
    const attempts: string[] = []
    let locked = 0
    let both: () => void
    const met = new Promise<void>((resolve) => {
      both = resolve
    })
    // Each transaction takes its lock, then the other's.
    const take = (first: string, second: string) =>
      db.tenant(organization, testActor, async ({ trx, wake }) => {
        attempts.push(first)
        await trx.raw('select pg_advisory_xact_lock(hashtext(?))', [first])
        if (++locked === 2) both()
        await met
        await trx.raw('select pg_advisory_xact_lock(hashtext(?))', [second])
        await insert(trx, 'test.deadlock')
        wake('agx_events')
      })
    await Promise.all([take(one, two), take(two, one)])
    assert.deepEqual([attempts.length, await count('test.deadlock')], [3, 2])
  })

  it('of one organization leave connections to the others, also while they wait for its locks', async () => {
    const small = connect({ url: db.url, poolSize: 5 })
    const other = await createOrganization(db)
    const held: (() => void)[] = []
    const writes = Array.from({ length: 20 }, () =>
      small.tenant(organization, testActor, async ({ trx }) => {
        await trx.raw('select 1')
        await new Promise<void>((resolve) => held.push(resolve))
      }),
    )
    try {
      while (held.length < 3) await setTimeout(5)
      const read = small.tenant(other, testActor, ({ trx }) => trx('organizations').select('id'))
      assert.deepEqual(await read, [{ id: other }])
      assert.equal(held.length, 3, 'its share of five connections')
      assert.equal(small.poolUse().tenant.waiting, 17)
    } finally {
      const end = setInterval(() => held.splice(0).forEach((release) => void release()), 5)
      await Promise.all(writes)
      clearInterval(end)
      await small.close()
    }
  })

  it('show each organization only its own rows, also concurrently', async () => {
    const others = await Promise.all(Array.from({ length: 20 }, () => createOrganization(db)))
    const seen = await Promise.all(
      others.map((id) => db.tenant(id, testActor, ({ trx }) => trx('organizations').select('id'))),
    )
    assert.deepEqual(
      seen,
      others.map((id) => [{ id }]),
    )
  })

  it('roll back a savepoint only', async () => {
    await db.tenant(organization, testActor, async (tx) => {
      await insert(tx.trx, 'test.around')
      await assert.rejects(
        savepoint(tx, async ({ trx }) => {
          await insert(trx, 'test.undone')
          await trx.raw('select 1 / 0')
        }),
        /division by zero/,
      )
    })
    assert.deepEqual([await count('test.around'), await count('test.undone')], [1, 0])
  })

  it('fail if a statement failed, even if its error was ignored', async () => {
    await assert.rejects(
      db.tenant(organization, testActor, async ({ trx }) => {
        await insert(trx, 'test.dropped')
        await trx.raw('select 1 / 0').catch(() => {})
      }),
      /rolled back/,
    )
    assert.equal(await count('test.dropped'), 0)
  })

  it('commit together with the statement after last(), and refuse another', async () => {
    const { rowCount } = await db.tenant(organization, testActor, (tx) => {
      tx.last()
      return tx.trx.raw(
        "insert into events (organization_id, id, name, data, actor) values (?, ?, 'test.last', '{}', '{}')",
        [organization, uuidv7()],
      )
    })
    assert.deepEqual([rowCount, await count('test.last')], [1, 1])
    await assert.rejects(
      db.tenant(organization, testActor, async (tx) => {
        tx.last()
        await tx.trx.raw('select 1 / 0')
      }),
      /division by zero/,
    )
    await assert.rejects(
      db.tenant(organization, testActor, async (tx) => {
        tx.last()
        await tx.trx.raw('select 1')
        await insert(tx.trx, 'test.more')
      }),
      /has ended/,
    )
    assert.equal(await count('test.more'), 0)
  })

  it('of one statement commit together with it, and refuse another', async () => {
    const inOne = <T>(work: (trx: Knex) => Promise<T>) =>
      db.tenant(organization, testActor, ({ trx }) => work(trx), undefined, { oneStatement: true })
    await inOne((trx) => insert(trx, 'test.one'))
    assert.equal(await count('test.one'), 1)
    await assert.rejects(
      inOne((trx) => trx.raw('select 1 / 0')),
      /division by zero/,
    )
    await assert.rejects(
      inOne(async (trx) => {
        await trx.raw('select 1')
        await insert(trx, 'test.second')
      }),
      /has ended/,
    )
    assert.equal(await count('test.second'), 0)
  })

  it('send BEGIN, the statements and COMMIT without waiting for answers', async () => {
    const proxy = await startProxy(db.url)
    const proxied = connect({ url: proxy.url })
    const names = () =>
      proxied.tenant(organization, testActor, ({ trx }) => trx('organizations').pluck('id'), undefined, {
        oneStatement: true,
      })
    // Connects and prepares the statement.
    await names()
    // COMMIT would never arrive if any statement waited for a result.
    proxy.holdAnswersUntil('COMMIT')
    assert.deepEqual(await names(), [organization])
    await proxied.close()
    proxy.close()
  })

  it('notify once for all that commit while a notification is on its way', async () => {
    const listener = new pg.Client({ connectionString: db.url })
    await listener.connect()
    const heard: string[] = []
    listener.on('notification', ({ payload }) => heard.push(payload!))
    await listener.query('listen agx_run_ended')
    const texts = recordStatements()
    const ids = Array.from({ length: 8 }, () => uuidv7())
    await Promise.all(
      ids.map((id) =>
        db.tenant(organization, testActor, ({ trx, last, wake }) => {
          wake('agx_run_ended', id)
          last()
          return trx('organizations').pluck('id')
        }),
      ),
    )
    while (heard.join().split(',').length < ids.length) await setTimeout(10)
    assert.deepEqual(heard.join().split(',').sort(), ids.sort())
    const notifications = texts.take().filter((text) => text.includes('pg_notify'))
    texts.stop()
    await listener.end()
    assert.ok(notifications.length < ids.length, String(notifications.length))
  })

  describe('gather statements', () => {
    const rows = (...names: string[]) => ({
      sql: `with given as (select * from jsonb_to_recordset(?) as e(id uuid, name text))
            insert into events (organization_id, id, name, data, actor)
            select cast(? as uuid), id, name, '{}', '{}' from given`,
      rows: names.map((name) => JSON.stringify({ id: uuidv7(), name })),
      bindings: [organization],
    })
    /** Rows of the same statement have the same time. */
    const statementsOf = async (like: string) => {
      const { rows } = await db.system.raw<{ rows: { count: number }[] }>(
        'select count(distinct cmin::text) as count from events where name like ?',
        [like],
      )
      return rows[0]!.count
    }

    it('of many rows in one, which the next statement sees', async () => {
      const seen = await db.tenant(organization, testActor, async (tx) => {
        for (let n = 0; n < 30; n++) tx.later(rows(`gathered.${n}`))
        return tx.trx('events').where('name', 'like', 'gathered.%').pluck('name')
      })
      assert.equal(seen.length, 30)
      assert.equal(await statementsOf('gathered.%'), 1)
    })

    it('and send them in the order of other statements, at the latest with the commit', async () => {
      await db.tenant(organization, testActor, async (tx) => {
        tx.later(rows('ordered.1', 'ordered.2'))
        await insert(tx.trx, 'ordered.3')
        tx.later(rows('ordered.4'))
        tx.later({ ...rows('ordered.5'), bindings: [organization.toUpperCase()] })
      })
      const { rows: found } = await db.system.raw<{ rows: { name: string }[] }>(
        "select name from events where name like 'ordered.%' order by cmin::text::integer, name",
      )
      assert.deepEqual(
        found.map(({ name }) => name),
        [1, 2, 3, 4, 5].map((n) => `ordered.${n}`),
      )
      assert.equal(await statementsOf('ordered.%'), 4)
    })

    it('and fail if one is refused', async () => {
      const refused = { ...rows('refused.1'), bindings: ['no id'] }
      await assert.rejects(
        db.tenant(organization, testActor, async (tx) => {
          tx.later(refused)
          await insert(tx.trx, 'refused.2')
        }),
        { code: '25P02' },
      )
      await assert.rejects(
        db.tenant(organization, testActor, async (tx) => tx.later(refused)),
        /rolled back/,
      )
      assert.equal(await statementsOf('refused.%'), 0)
    })
  })

  it('refuse statements after their end', async () => {
    const trx = await db.tenant(organization, testActor, async (tx) => ({ late: tx.trx }))
    await assert.rejects(Promise.resolve(insert(trx.late, 'test.late')), /has ended/)
    assert.equal(await count('test.late'), 0)
  })

  it('fail if their connection is lost; the next one succeeds', async () => {
    // The roles of the pools must not terminate sessions.
    const owner = new pg.Client({ connectionString: db.url })
    await owner.connect()
    await assert.rejects(
      db.tenant(organization, testActor, async ({ trx }) => {
        await insert(trx, 'test.cut')
        const { rows } = await trx.raw('select pg_backend_pid() as pid')
        await owner.query('select pg_terminate_backend($1)', [rows[0].pid])
        await insert(trx, 'test.cut')
      }),
      /terminat|not queryable|EPIPE|ECONNRESET/,
    )
    await owner.end()
    await db.tenant(organization, testActor, ({ trx }) => insert(trx, 'test.next'))
    assert.deepEqual([await count('test.cut'), await count('test.next')], [0, 1])
  })
})
