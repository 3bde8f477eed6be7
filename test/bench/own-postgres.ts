import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../../db/migrations/migrate.ts'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { startPostgres } from '../../worker/dev/postgres/server.ts'
import { reaper } from '../support/reaper.ts'

/**
 * Runs `work` with a separate migrated PostgreSQL, which no worker uses; `owner` is connected as its superuser. The
 * folder is deleted afterwards.
 */
export async function withOwnPostgres(
  work: (db: Database, owner: pg.Client) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agx-bench-'))
  // As root, PostgreSQL runs as another user, who needs access.
  chmodSync(folder, 0o755)
  const postgres = await startPostgres({ dataDir: folder, logFile: join(folder, 'postgres.log') })
  const cleanUp = reaper(`
    kill -INT $(head -n 1 '${folder}/postgres/postmaster.pid')
    sleep 3
    rm -rf '${folder}'`)
  const db = connect({ url: postgres.ownerUrl })
  const owner = new pg.Client({ connectionString: postgres.ownerUrl })
  try {
    await migrate(postgres.ownerUrl)
    await owner.connect()
    await work(db, owner)
  } finally {
    await db.close()
    await owner.end()
    await postgres.stop()
    await cleanUp()
  }
}
