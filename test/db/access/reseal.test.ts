import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { v7 as uuidv7 } from 'uuid'
import { reseal, SEALED_PLACES } from '../../../db/access/reseal.ts'
import { openSecrets, ownerOfSecret, putSecret } from '../../../db/access/secrets.ts'
import { approvalToken, readApprovalToken } from '../../../db/process/approval-links.ts'
import { headerOf, open, seal } from '../../../db/process/seal.ts'
import { ownerOfSensitive } from '../../../db/records/custom-fields/sensitive.ts'
import { createNodeTest, openTestValues } from '../../../db/runs/node-tests.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { untilBlocked } from '../../support/blocked.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { signIn } from '../../support/session.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

describe('a rotation of SECRETS_KEY', () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)]
  const base64 = (key: Buffer) => key.toString('base64')
  const both = [fresh, old] as const
  let db: TestDatabase
  let apis: TestApi[] = []
  beforeEach(async () => {
    db = await createTestDatabase()
  })
  afterEach(async () => {
    for (const api of apis) await api.close()
    apis = []
    await db.drop()
  })

  const secretsOf = (organizationId: string, key: Parameters<typeof openSecrets>[1]) =>
    db.tenant(organizationId, testActor, (tx) => openSecrets(tx, key))
  const put = (organizationId: string, key: Buffer, name: string, value: string) =>
    db.tenant(organizationId, testActor, (tx) => putSecret(tx, key, name, value))
  /** The tables with a value in any column that `key` sealed. */
  const tablesWith = (key: Buffer) =>
    db.asOwner(async (client) => {
      const found: string[] = []
      const { rows } = await client.query(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1",
      )
      for (const { relname } of rows) {
        const { rowCount } = await client.query(`select from ${relname} t where t::text like $1 limit 1`, [
          `%${headerOf(key)}.%`,
        ])
        if (rowCount) found.push(relname)
      }
      return found
    })

  it('seals everything again while the service runs with both keys, also if interrupted', async () => {
    const start = async (SECRETS_KEY: Buffer, further: Buffer[] = []) => {
      const env = { SECRETS_KEY: base64(SECRETS_KEY), SECRETS_KEYS_TO_OPEN: further.map(base64).join(',') }
      apis.push(await startApi(db, env))
      return apis.at(-1)!
    }
    const before = await start(old)
    const { organizationId } = before
    const app = await signIn(db, before)
    for (const name of ['a', 'b', 'c', 'd', 'e'])
      await app('PUT', `/secrets/${name}`, { value: `value of ${name}` })
    const { body: incoming } = await app('POST', '/webhooks/incoming', {
      name: 'Form',
      secret_fields: ['ssn'],
    })
    const rotate = (path: string) => app('POST', `${path}/rotate-secret`, { overlap_hours: 24 })
    const { body: rotated } = await rotate(`/webhooks/incoming/${incoming.id}`)
    const { body: outgoing } = await app('POST', '/webhooks/outgoing', {
      name: 'Out',
      url: 'https://example.com/',
      events: ['contact.*'],
      headers: { 'X-Token': 'header value' },
    })
    const { body: sending } = await rotate(`/webhooks/outgoing/${outgoing.id}`)
    await before.request('POST', `/webhooks/incoming/${incoming.id}`, {
      key: null,
      headers: { 'X-Webhook-Secret': incoming.secret },
      body: { last_name: 'Lovelace', ssn: '078-05-1120' },
    })
    const values = { config: { text: 'config value' }, inputs: {} }
    const test = await db.tenant(organizationId, testActor, (tx) =>
      createNodeTest(tx, old, { node_type: 'set_fields', title: 'Test', ...values }),
    )
    const { body: contact } = await before.request('POST', '/v1/objects/contacts', {
      body: { first_name: 'Ada' },
    })
    const { body: file } = await before.request(
      'POST',
      `/v1/objects/contacts/${contact.id}/files?name=x.txt`,
      { body: 'the content', headers: { 'Content-Type': 'text/plain' } },
    )
    await before.request('POST', '/v1/custom-fields/contacts', {
      body: { name: 'iban', type: 'text', sensitive: true },
    })
    const withIban = { last_name: 'Hopper', custom_fields: { iban: 'DE89 3704' } }
    const { body: sensitive } = await before.request('POST', '/v1/objects/contacts', { body: withIban })
    const subscribe = async (api: TestApi) =>
      (
        await api.request('POST', '/v1/webhooks/outgoing', {
          key: before.key,
          headers: { 'Idempotency-Key': 'subscribe' },
          body: { name: 'Zap', url: 'https://example.com/', events: ['deal.*'] },
        })
      ).body.secret
    const subscribed = await subscribe(before)
    const sealedTables = [
      'files',
      'idempotency_keys',
      'incoming_logs',
      'incoming_webhooks',
      'outgoing_webhooks',
      'runs',
      'secrets',
      'sensitive_values',
    ]
    assert.deepEqual(await tablesWith(old), sealedTables)

    const assertServes = async (api: TestApi) => {
      const { body } = await api.request('GET', `/v1/files/${file.id}`, { key: before.key })
      assert.equal(body, 'the content')
      const revealed = await api.request('POST', `/v1/objects/contacts/${sensitive.id}/reveal`, {
        key: before.key,
      })
      assert.deepEqual(revealed.body.custom_fields, { iban: 'DE89 3704' })
      for (const secret of [incoming.secret, rotated.secret]) {
        const { status } = await api.request('POST', `/webhooks/incoming/${incoming.id}`, {
          key: null,
          body: { email: 'ada@example.com' },
          headers: { 'X-Webhook-Secret': secret },
        })
        assert.equal(status, 200)
      }
    }
    // The order of a deploy without downtime: first one more key that opens, then the change of the sealing key.
    const prepared = await start(old, [fresh])
    const changed = await start(fresh, [old])
    for (const api of [prepared, changed]) await assertServes(api)

    let batches = 0
    const partial = await reseal(db.system, both, { batch: 2, stopped: () => ++batches > 5 })
    assert.ok(partial.some(({ resealed }) => resealed > 0))
    const left = [
      'files',
      'idempotency_keys',
      'incoming_logs',
      'incoming_webhooks',
      'outgoing_webhooks',
      'runs',
      'sensitive_values',
    ]
    assert.deepEqual(await tablesWith(old), left)
    for (const api of [prepared, changed]) await assertServes(api)

    const rest = await reseal(db.system, both, { batch: 2 })
    const counts = [partial, rest].flat().reduce((sum, { resealed }) => sum + resealed, 0)
    assert.equal(counts, 5 + 2 + 3 + 1 + 1 + 1 + 1 + 1 + 1)
    assert.deepEqual(await tablesWith(old), [])
    assert.deepEqual(await tablesWith(fresh), sealedTables)
    for (const api of [prepared, changed, await start(fresh)]) {
      await assertServes(api)
      assert.equal(await subscribe(api), subscribed)
    }

    assert.deepEqual(
      [...(await secretsOf(organizationId, fresh)).entries()].sort(),
      ['a', 'b', 'c', 'd', 'e'].map((name) => [name, `value of ${name}`]),
    )
    const row = await db.system('outgoing_webhooks').where({ id: outgoing.id }).first()
    assert.deepEqual(
      [row.secret_sealed, row.previous_secret_sealed].map((sealed) => open(fresh, sealed)),
      [sending.secret, outgoing.secret],
    )
    assert.deepEqual(JSON.parse(open(fresh, row.headers_sealed)), { 'x-token': 'header value' })
    const { node } = await db.system('runs').where({ id: test }).first()
    assert.deepEqual([openTestValues(fresh, node), node.title], [values, 'Test'])
    const again = await reseal(db.system, both)
    assert.ok(again.every(({ resealed, unopened }) => resealed === 0 && unopened.length === 0))
  })

  it('covers every column with sealed values', async () => {
    const { rows } = await db.system.raw(
      `select table_name, column_name from information_schema.columns
       where table_schema = 'public' and column_name like '%sealed'`,
    )
    const columns = rows.map((row: Record<string, string>) => `${row.table_name}.${row.column_name}`)
    assert.deepEqual(
      [...columns, 'runs.node'].sort(),
      SEALED_PLACES.map(({ table, column }) => `${table}.${column}`).sort(),
    )
  })

  it('never undoes what the service writes meanwhile', async () => {
    const organization = await createOrganization(db)
    await put(organization, old, 'token', 'the value of before')
    const written = await db.system.transaction(async (trx) => {
      const sealed = seal(fresh, 'the value of now', ownerOfSecret(organization, 'token'))
      await trx('secrets').where({ organization_id: organization }).update({ sealed })
      // It reads the row as it was, and its write waits for this transaction.
      const pass = reseal(db.system, both)
      await untilBlocked(db)
      return { pass }
    })
    assert.equal((await written.pass).find(({ place }) => place.table === 'secrets')!.resealed, 0)
    assert.deepEqual(Object.fromEntries(await secretsOf(organization, fresh)), { token: 'the value of now' })
  })

  it('keeps the links of approvals working while the old key is configured', () => {
    const approval = { organization_id: uuidv7(), run_id: uuidv7(), id: uuidv7() }
    const link = approvalToken(old, approval)
    assert.deepEqual(readApprovalToken(both, link), approval)
    assert.equal(readApprovalToken(fresh, link), undefined)
    assert.deepEqual(readApprovalToken([old, fresh], approvalToken(both, approval)), approval)
  })

  describe('by npm run reseal', () => {
    const start = (further: Buffer[]): ChildProcess =>
      spawn(process.execPath, ['worker/run.mjs', 'worker/commands/reseal.ts'], {
        cwd: ROOT,
        env: {
          ...process.env,
          NODE_ENV: 'test',
          DATABASE_URL: db.url,
          SECRETS_KEY: base64(fresh),
          SECRETS_KEYS_TO_OPEN: further.map(base64).join(','),
        },
      })
    const run = async (further: Buffer[]) => {
      const child = start(further)
      let output = ''
      for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text) => (output += text))
      const [code] = await once(child, 'close')
      return { code, output }
    }
    const remaining = async () =>
      Number(
        (
          await db
            .system('secrets')
            .whereLike('sealed', `${headerOf(old)}.%`)
            .count()
        )[0]!.count as number,
      )

    it('continues after kill -9, and every value can be opened', async () => {
      const COUNT = 5_000
      const organization = await createOrganization(db)
      const rows = Array.from({ length: COUNT }, (_, i) => {
        const name = `s${i}`
        const sealed = seal(old, `value ${i}`, ownerOfSecret(organization, name))
        return { organization_id: organization, name, sealed }
      })
      await db.system.batchInsert('secrets', rows, 2_000)
      const killed = start([old])
      const exited = once(killed, 'exit')
      while ((await remaining()) === COUNT) await new Promise((resolve) => setTimeout(resolve, 5))
      killed.kill('SIGKILL')
      await exited
      // A statement that it had sent may still commit.
      const sessions = () =>
        db.asOwner(async (client) => {
          const { rowCount } = await client.query(
            "select from pg_stat_activity where datname = current_database() and application_name like 'agx reseal%'",
          )
          return rowCount
        })
      await until(async () => (await sessions()) === 0, 'the end of its sessions')
      const left = await remaining()
      assert.ok(left > 0 && left < COUNT, String(left))
      const { code, output } = await run([old])
      assert.deepEqual([code, await remaining()], [0, 0], output)
      assert.match(output, new RegExp(`secrets.sealed: ${left} sealed again\n`))
      assert.match(output, /SECRETS_KEYS_TO_OPEN can be removed/)
      const opened = await secretsOf(organization, fresh)
      assert.ok(rows.every(({ name }, i) => opened.get(name) === `value ${i}`))
    })

    it('seals the sensitive values of a version that did not', async () => {
      const organization_id = await createOrganization(db)
      const rows = Array.from({ length: 1_001 }, (_, i) => ({
        organization_id,
        record_id: uuidv7(),
        entity: 'contacts',
        name: 'ssn',
        mask: `[masked:${i}]`,
        value: JSON.stringify(`ssn-${i}`),
      }))
      await db.system.batchInsert('sensitive_values', rows, 500)
      const { code, output } = await run([])
      assert.equal(code, 0, output)
      assert.match(output, /sensitive_values: 1001 sealed that were not/)
      const stored = await db.system('sensitive_values').where({ organization_id }).select()
      const opened = stored.map(({ mask, sealed, value }) => {
        assert.equal(value, null)
        return JSON.parse(open(fresh, sealed, ownerOfSensitive(organization_id, mask)))
      })
      assert.deepEqual(opened.sort(), rows.map(({ value }) => JSON.parse(value)).sort())
    })

    it('names what no key opens, without a value, and exits with 1', async () => {
      const organization = await createOrganization(db)
      await put(organization, old, 'known', 'hunter2-hunter2')
      await put(organization, randomBytes(32), 'lost', 'hunter3-hunter3')
      const { code, output } = await run([old])
      assert.equal(code, 1)
      assert.match(output, /secrets.sealed: 1 sealed again/)
      const place = `secrets.sealed of name lost in organization ${organization}`
      assert.ok(output.includes(`${place}: the secret was sealed with another SECRETS_KEY`), output)
      assert.match(output, /1 values remain/)
      assert.doesNotMatch(output, /hunter|v1\./)
      assert.equal((await secretsOf(organization, fresh)).get('known'), 'hunter2-hunter2')
    })
  })
})
