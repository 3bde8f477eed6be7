import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { connect } from '../../db/postgres/connect.ts'
import { startPostgres } from '../../db/postgres/embedded/server.ts'
import { migrate } from '../../db/postgres/migrate.ts'
import { planOf, statementsOf } from '../support/plans.ts'
import { reaper } from '../support/reaper.ts'
import { fillVolume } from '../support/volume.ts'
import { volumeWork } from '../support/volume-statements.ts'
import { print } from './report.ts'

/** The time of a statement, and its plan, of purges, claims, the sweep and lists, with `rows` rows in each growing table. */
export async function benchVolume(rows: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agx-bench-'))
  // As root, PostgreSQL runs as another user, who needs access.
  chmodSync(folder, 0o755)
  const postgres = await startPostgres({ dataDir: folder, logFile: join(folder, 'postgres.log') })
  const cleanUp = reaper(`
    kill -INT $(head -n 1 '${folder}/postgres/postmaster.pid')
    sleep 3
    rm -rf '${folder}'`)
  await migrate(postgres.ownerUrl)
  const client = new pg.Client({ connectionString: postgres.ownerUrl })
  await client.connect()
  const db = connect({ url: postgres.ownerUrl })
  try {
    const started = performance.now()
    const organizations = await fillVolume(client, rows)
    print(`${rows} rows in each growing table, filled in ${seconds(started)} s`)
    for (const [name, work] of Object.entries(volumeWork(organizations))) {
      const began = performance.now()
      const statements = await statementsOf(db, work)
      print(`${name.padEnd(28)} ${Math.round(performance.now() - began)} ms`)
      for (const statement of statements) {
        const plan = await planOf(client, statement)
        const scans = plan.scanned.length > 0 ? `  scans ${plan.scanned.join(', ')}` : ''
        print(`    ${plan.ms.toFixed(1).padStart(7)} ms  ${plan.rows} rows${scans}  ${plan.nodes.join(', ')}`)
      }
    }
  } finally {
    await db.close()
    await client.end()
    await postgres.stop()
    await cleanUp()
  }
}

const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(0)
