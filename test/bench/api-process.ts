import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '../../db/migrations/migrate.ts'
import { FLAGS } from '../../worker/dev/flags.ts'
import { freePort, startPostgres } from '../../worker/dev/postgres/server.ts'
import { reaper } from '../support/reaper.ts'

export interface ApiProcess {
  url: string
  databaseUrl: string
  pid: number
  /** The resident memory of the api, in megabytes. */
  memory(): number
  stop(): Promise<void>
}

/**
 * An api process as `npm run api` starts it, and a PostgreSQL as that of `npm start`, without worker and
 * Temporal. `databaseUrl`: another server, whose data is kept. `entry`: what is run instead of the compiled api.
 */
export async function startApi(
  databaseUrl?: string,
  entry: string[] = ['worker/run.mjs', 'api/main.ts'],
): Promise<ApiProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'agx-bench-'))
  // As root, PostgreSQL runs as another user, who needs access.
  chmodSync(folder, 0o755)
  const postgres = databaseUrl
    ? undefined
    : await startPostgres({ dataDir: folder, logFile: join(folder, 'postgres.log') })
  const url = databaseUrl ?? postgres!.ownerUrl
  await migrate(url)
  const port = await freePort()
  const log = openSync(join(folder, 'api.log'), 'a')
  const child = spawn(
    process.execPath,
    [...FLAGS.api, ...(process.env.BENCH_API_FLAGS?.split(' ') ?? []), ...entry],
    {
      cwd: fileURLToPath(new URL('../../', import.meta.url)),
      env: { ...process.env, PORT: String(port), DATABASE_URL: url, DATA_DIR: folder },
      stdio: ['ignore', log, log],
    },
  )
  const cleanUp = reaper(`
    kill -TERM ${child.pid}
    kill -INT $(head -n 1 '${folder}/postgres/postmaster.pid')
    sleep 3
    rm -rf '${folder}'`)
  const api = `http://127.0.0.1:${port}`
  for (let tries = 0; !(await isAlive(api)); tries++) {
    if (child.exitCode !== null || tries > 300)
      throw new Error(`the api did not start: ${readFileSync(join(folder, 'api.log'), 'utf8')}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return {
    url: api,
    databaseUrl: url,
    pid: child.pid!,
    memory: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1_024,
    async stop() {
      // It may have ended by an error.
      if (child.exitCode === null && child.signalCode === null) {
        child.kill()
        await once(child, 'exit')
      }
      await postgres?.stop()
      await cleanUp()
    },
  }
}

const isAlive = (url: string) =>
  fetch(`${url}/healthz`).then(
    (answer) => answer.ok,
    () => false,
  )
