import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  createMember,
  createOrganization,
  createTestDatabase,
  type TestDatabase,
} from '../../support/database.ts'

describe('npm run set-plan', () => {
  let db: TestDatabase
  let id: string
  let ada: string
  before(async () => {
    db = await createTestDatabase()
    id = await createOrganization(db, { name: 'Acme', plan: 'free' })
    ada = `${await createMember(db, id, 'Ada', 'owner')}@example.com`
  })
  after(() => db.drop())

  const run = (...args: string[]) =>
    new Promise<string>((resolve) => {
      execFile(
        process.execPath,
        ['worker/run.mjs', 'worker/commands/set-plan.ts', ...args],
        { env: { ...process.env, DATABASE_URL: db.url } },
        (error, out, errors) => resolve(`${Number(error?.code ?? 0)} ${out}${errors}`),
      )
    })
  const plan = async () => (await db.system('organizations').where({ id }).first()).plan

  it('changes the plan of an organization, by its id or an owner', async () => {
    assert.equal(await run(id, 'professional'), `0 plan of Acme (${id}): professional, before free\n`)
    assert.equal(
      await run(ada.toUpperCase(), 'professional'),
      `0 plan of Acme (${id}): professional, as before\n`,
    )
    const log = await db.system('audit_log').where({ action: 'organization.plan_changed' })
    assert.deepEqual(
      log.map(({ actor_type, details }) => [actor_type, details]),
      [['system', { from: 'free', to: 'professional' }]],
    )
  })

  it('refuses a plan that does not cover what exists, unless forced', async () => {
    await db.asOwner((client) =>
      client.query(
        `insert into outgoing_webhooks (organization_id, id, name, url, events, secret_sealed)
         select $1, gen_random_uuid(), 'T', 'https://example.com/', '{*}', 'x' from generate_series(1, 6)`,
        [id],
      ),
    )
    assert.match(
      await run(id, 'free'),
      /^1 the plan free does not cover .*6 outgoing webhooks \(at most 5\)\n$/,
    )
    assert.equal(await plan(), 'professional')
    assert.match(await run('--force', id, 'free'), /^0 .*: free, before professional\n$/)
    assert.equal(await plan(), 'free')
  })

  it('says what is wrong', async () => {
    const other = await createOrganization(db, { name: 'Other' })
    const user_id = ada.split('@')[0]!
    await db.system('memberships').insert({ organization_id: other, user_id, role: 'owner' })
    const outputs = await Promise.all([run(), run(id, 'gold'), run('nobody@example.com', 'free')])
    assert.match(outputs[0]!, /^1 usage: npm run set-plan/)
    assert.match(outputs[1]!, /^1 usage: npm run set-plan .*<free\|professional\|enterprise>/)
    assert.equal(outputs[2], '1 organization not found\n')
    assert.match(await run(ada, 'free'), /^1 .* owns 2 organizations: give the id\n/)
  })
})
