import { join } from 'node:path'
import { startPostgres } from '../../worker/dev/postgres/server.ts'
import { memoryFolder } from './folder.ts'
import { reaper } from './reaper.ts'

/** A PostgreSQL server on a free port. It ends with this process, or by `stop`; its data is not kept. */
export async function startTestPostgres(): Promise<{
  url: string
  logFile: string
  stop(): Promise<void>
}> {
  const folder = memoryFolder()
  const logFile = join(folder, 'postgres.log')
  const server = await startPostgres({ dataDir: folder, logFile, fast: true })
  // Its data is not kept, so it needs no clean shutdown.
  const pidFile = join(server.folder, 'postmaster.pid')
  const stop = reaper(
    `kill -QUIT $(head -n 1 '${pidFile}'); sleep 0.2; rm -rf '${server.folder}' '${folder}'`,
  )
  return { url: server.ownerUrl, logFile, stop }
}
