import { Connection } from '@temporalio/client'
import { loadClientConnectConfig } from '@temporalio/envconfig'
import { ping } from '../db/postgres/connect.ts'
import { isMigrated } from '../db/postgres/migrate.ts'
import type { System } from '../db/postgres/tenancy.ts'
import type { AppDeps } from './deps.ts'

export interface Readiness {
  status: 'ready' | 'not_ready'
  checks: { database: Outcome; migrations: Outcome; temporal: Outcome }
}

type Outcome = 'ok' | 'failed'

const CACHED_MS = 2_000
const TIMEOUT_MS = 2_000

/**
 * Readiness: the database answers and is migrated, and Temporal is reachable. The result is cached for two seconds, so
 * frequent probes are cheap.
 */
export function createReadiness(deps: AppDeps): () => Promise<Readiness> {
  let last: { at: number; readiness: Promise<Readiness> } | undefined
  return () => {
    if (!last || Date.now() - last.at > CACHED_MS) last = { at: Date.now(), readiness: checkReadiness(deps) }
    return last.readiness
  }
}

async function checkReadiness({ db, log }: AppDeps): Promise<Readiness> {
  const outcome = async (name: string, check: PromiseLike<unknown>): Promise<Outcome> => {
    try {
      await Promise.race([check, timeout()])
      return 'ok'
    } catch (error) {
      // The endpoint is public: the reason goes to the log only.
      log.warn({ check: name, reason: String(error) }, 'not ready')
      return 'failed'
    }
  }
  const [database, migrations, temporal] = await Promise.all([
    outcome('database', ping(db.system)),
    outcome('migrations', requireMigrated(db.system)),
    outcome('temporal', reachTemporal()),
  ])
  const checks = { database, migrations, temporal }
  const ready = Object.values(checks).every((check) => check === 'ok')
  return { status: ready ? 'ready' : 'not_ready', checks }
}

async function requireMigrated(system: System): Promise<void> {
  if (!(await isMigrated(system))) throw new Error('migrations are pending: npm run migrate')
}

/** `connect` requests the server's capabilities, so success means that the server answers. */
async function reachTemporal(): Promise<void> {
  const { connectionOptions } = loadClientConnectConfig()
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout: TIMEOUT_MS })
  await connection.close()
}

const timeout = () =>
  new Promise<never>((_, reject) =>
    setTimeout(() => reject(new Error('no answer in time')), TIMEOUT_MS).unref(),
  )
