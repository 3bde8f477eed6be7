import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'

describe('npm run set-pools', () => {
  let db: TestDatabase
  let id: string
  before(async () => {
    db = await createTestDatabase()
    id = await createOrganization(db, { name: 'Acme' })
  })
  after(() => db.drop())

  const run = (...args: string[]) =>
    new Promise<string>((resolve) => {
      execFile(
        process.execPath,
        ['worker/run.mjs', 'worker/commands/set-pools.ts', ...args],
        { env: { ...process.env, DATABASE_URL: db.url } },
        (error, out, errors) => resolve(`${Number(error?.code ?? 0)} ${out}${errors}`),
      )
    })
  const pools = async () => (await db.system('organizations').where({ id }).first()).pools

  it('replaces the pools of an organization, which has none at first, and notes it in the audit log', async () => {
    assert.deepEqual(await pools(), [])
    await db.system('pool_workers').insert({ id, pool: 'dmz', seen_at: new Date() })
    const first = await run(id, 'lab,dmz')
    assert.match(
      first,
      /^0 pools of Acme \(\S+\): lab, dmz, before none\nno worker of lab runs .*WORKER_POOL=lab\n$/,
    )
    assert.deepEqual(await pools(), ['dmz', 'lab'])
    assert.match(await run(id, 'none'), /: none, before dmz, lab\n$/)
    assert.deepEqual(await pools(), [])
    const log = await db.system('audit_log').where({ action: 'organization.pools_changed' }).orderBy('id')
    assert.deepEqual(
      log.map(({ actor_type, details }) => [actor_type, details]),
      [
        ['system', { from: [], to: ['dmz', 'lab'] }],
        ['system', { from: ['dmz', 'lab'], to: [] }],
      ],
    )
  })

  it('says what is wrong', async () => {
    const outputs = await Promise.all([
      run(id),
      run(id, 'DMZ'),
      run(id, 'default'),
      run('nobody@example.com', 'a'),
    ])
    for (const output of outputs.slice(0, 3)) assert.match(output, /^1 usage: npm run set-pools/)
    assert.equal(outputs[3], '1 organization not found\n')
  })
})
