import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../../db/migrations/migrate.ts'
import { connected } from '../../support/database.ts'
import { fillEveryTable } from '../../support/every-table.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { installedPostgres, startInstalledPostgres } from '../../support/installed-postgres.ts'
import { runBackup } from '../../support/run-backup.ts'

describe('npm run backup', function () {
  this.timeout(300_000)
  const programs = installedPostgres()
  const dump = join(temporaryFolder(), 'agx.dump')
  let from: Awaited<ReturnType<typeof startInstalledPostgres>>
  let to: typeof from
  let organizations: string[]
  before(async function () {
    if (!programs) return this.skip()
    from = await startInstalledPostgres(programs)
    to = await startInstalledPostgres(programs)
    await migrate(from.url)
    organizations = await connected(from.url, async (client) => [
      await fillEveryTable(client),
      await fillEveryTable(client),
    ])
  })
  after(() => Promise.all([from?.stop(), to?.stop()]))

  const rename = (url: string) =>
    connected(url, (client) =>
      client.query("update organizations set name = 'Other' where id = $1", [organizations[0]]),
    )
  const backUp = (server: typeof from, ...args: string[]) =>
    runBackup(programs!, { DATABASE_URL: server.url }, ...args)

  it('dumps one moment while others write, readable by its user alone', async () => {
    let stop = false
    const writing = connected(from.url, async (client) => {
      while (!stop) await client.query('update organizations set name = name || $1', ['x'])
    })
    const { code, printed } = await backUp(from, 'create', dump)
    stop = true
    await writing
    assert.equal(code, 0, printed)
    assert.match(printed, /rows of 2 organizations/)
    for (const file of [dump, `${dump}.json`]) assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.ok(!readFileSync(`${dump}.json`, 'utf8').includes(new URL(from.url).password))
  })

  it('restores it into another server, with every table of every organization', async () => {
    const { code, printed } = await backUp(to, 'restore', dump)
    assert.equal(code, 0, printed)
    assert.match(printed, /verified: \d+ rows[\s\S]*no migration to apply[\s\S]*TEMPORAL_ADOPT=true/)
    const tables = new Set(
      JSON.parse(readFileSync(`${dump}.json`, 'utf8')).contents.map(
        ({ table, organization }: { table: string; organization: string }) => `${table} ${organization}`,
      ),
    )
    for (const id of organizations) assert.ok(tables.has(`contacts ${id}`))
  })

  it('finds a row that differs, and one that is gone, by table and organization', async () => {
    assert.match((await backUp(to, 'verify', dump)).printed, /verified/)
    await rename(to.url)
    await connected(to.url, (client) => client.query('delete from key_values'))
    const { code, printed } = await backUp(to, 'verify', dump)
    assert.equal(code, 1)
    assert.ok(printed.includes(`organizations of ${organizations[0]}: 1 rows, whose values differ`), printed)
    assert.ok(printed.includes(`key_values of ${organizations[1]}: 1 rows in the backup, 0 here`), printed)
  })

  it('replaces what a database holds only if it is told to', async () => {
    const refused = await backUp(to, 'restore', dump)
    assert.equal(refused.code, 1)
    assert.match(refused.printed, /the database has organizations: .*--replace/)
    const { code, printed } = await backUp(to, 'restore', dump, '--replace')
    assert.equal(code, 0, printed)
  })

  it('fails with what to do: no dump, a damaged one, no program, wrong words', async () => {
    const lost = await backUp(to, 'restore', `${dump}.lost`)
    assert.match(`${lost.code} ${lost.printed}`, /^1 .*lost\.json cannot be read: `create` writes it/)
    writeFileSync(`${dump}.cut`, readFileSync(dump).subarray(0, 1_000))
    writeFileSync(`${dump}.cut.json`, readFileSync(`${dump}.json`))
    const cut = await backUp(to, 'restore', `${dump}.cut`, '--replace')
    assert.match(`${cut.code} ${cut.printed}`, /^1 [\s\S]*pg_restore has failed/)
    assert.ok(!cut.printed.includes(new URL(to.url).password))
    assert.match((await backUp(to, 'verify', dump)).printed, /verified/, 'the database is as before')
    const kept = statSync(dump).mtimeMs
    const none = await runBackup('/nowhere', { DATABASE_URL: to.url, PATH: '/nowhere' }, 'create', dump)
    assert.match(`${none.code} ${none.printed}`, /^1 [\s\S]*pg_dump was not found: install/)
    assert.equal(statSync(dump).mtimeMs, kept, 'the dump before is kept')
    assert.ok(!existsSync(`${dump}.part`))
    assert.match((await backUp(to, 'create')).printed, /^usage: npm run backup/)
  })
})
