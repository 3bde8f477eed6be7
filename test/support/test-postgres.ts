import { join } from 'node:path'
import { startPostgres } from '../../db/postgres/embedded/server.ts'
import { temporaryFolder } from './folder.ts'
import { reaper } from './reaper.ts'

/** A PostgreSQL server on a free port. It ends with this process, or by `stop`; its data is not kept. */
export async function startTestPostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = temporaryFolder()
  const server = await startPostgres({ dataDir: folder, logFile: join(folder, 'postgres.log'), fast: true })
  // Its data is not kept, so it needs no clean shutdown.
  const pidFile = join(server.folder, 'postmaster.pid')
  const stop = reaper(
    `kill -QUIT $(head -n 1 '${pidFile}'); sleep 0.2; rm -rf '${server.folder}' '${folder}'`,
  )
  return { url: server.ownerUrl, stop }
}
