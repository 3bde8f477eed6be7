import { set } from './support/nodes.ts'
import pg from 'pg'
import { startApi } from './support/api.ts'
import { createOrganization, createTestDatabase } from './support/database.ts'
import { searchTables } from './support/planted.ts'
import { startWorker, queueRun, untilRun } from './support/worker.ts'

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const c = process.cpuUsage(), t = performance.now()
  const r = await work()
  const d = process.cpuUsage(c)
  console.log(name.padEnd(30), 'wall', (performance.now() - t).toFixed(0), 'cpu', ((d.user + d.system) / 1000).toFixed(0))
  return r
}
describe('scratch', function () {
  this.timeout(120000)
  it('measures', async () => {
    console.log('import done, cpu since start', process.cpuUsage(), performance.now())
    for (let i = 0; i < 4; i++) {
      const db = await timed('createTestDatabase', () => createTestDatabase())
      const api = await timed('startApi', () => startApi(db))
      await timed('request', () => api.request('GET', '/v1/contacts'))
      const organizationId = await createOrganization(db)
      const w: any = await timed('startWorker', () => startWorker(db))
      await timed('run', async () => { const id = await queueRun(db, organizationId, { nodes: [set('a')] }); await untilRun(db, id) })
      await timed('run', async () => { const id = await queueRun(db, organizationId, { nodes: [set('a')] }); await untilRun(db, id) })
      await timed('worker.stop', () => w.stop())
      await timed('api.close', () => api.close())
      await timed('searchTables', () => db.asOwner(searchTables))
      await timed('drop', () => db.drop())
    }
    const url = process.env.TEST_DATABASE_URL!
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const tpl = (await client.query("select datname, pg_database_size(oid) s from pg_database where datname like 'agx_template%'")).rows[0]
    console.log(tpl)
    for (let i = 0; i < 3; i++) for (const s of ['wal_log', 'file_copy'])  {
      await timed('create ' + s, () => client.query(`create database x${i}${s} template ${tpl.datname} strategy ${s}`))
    }
    for (let i = 0; i < 3; i++) for (const s of ['wal_log', 'file_copy'])  {
      await timed('drop ' + s, () => client.query(`drop database x${i}${s}`))
    }
    await client.end()
  })
})
