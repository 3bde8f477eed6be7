import { isMigrated } from '../db/migrations/migrate.ts'
import { pingLogins } from '../db/postgres/connect.ts'
import type { System } from '../db/postgres/tenancy.ts'
import { requireTemporal } from '../db/process/temporal-answers.ts'
import { temporalProfile } from '../db/process/temporal-profile.ts'
import type { AppDeps } from './deps.ts'

export interface Readiness {
  /** `degraded`: work is accepted, and starts when the failed part recovers. `stopping`: send no further requests. */
  status: 'ready' | 'degraded' | 'not_ready' | 'stopping'
  checks: { database: Outcome; migrations: Outcome; temporal: Outcome }
}

type Outcome = 'ok' | 'failed'

const CACHED_MS = 2_000
const TIMEOUT_MS = 2_000

/** The statuses to which /readyz responds with 200. */
export const isReady = ({ status }: Readiness): boolean => status === 'ready' || status === 'degraded'

/**
 * Reports whether this process can accept work, for which it needs the migrated database. An unreachable Temporal is
 * reported but not required: the relay starts the accepted work when Temporal recovers. The result may be some seconds
 * old, so frequent probes are cheap.
 */
export function createReadiness(deps: AppDeps): () => Promise<Readiness> {
  const { db, config, stopping } = deps
  const read = {
    database: cached(() => outcomeOf(deps, 'database', pingLogins(db))),
    migrations: cached(() => outcomeOf(deps, 'migrations', requireMigrated(db.system))),
    temporal: cached(() => outcomeOf(deps, 'temporal', reachTemporal(config.TEMPORAL_NAMESPACE))),
  }
  return async () => {
    const [database, migrations, temporal] = await Promise.all([
      read.database.fresh(),
      read.migrations.fresh(),
      read.temporal.latest(),
    ])
    const checks = { database, migrations, temporal }
    return { status: stopping.aborted ? 'stopping' : statusOf(checks), checks }
  }
}

function statusOf({ database, migrations, temporal }: Readiness['checks']): Readiness['status'] {
  if (database === 'failed' || migrations === 'failed') return 'not_ready'
  return temporal === 'failed' ? 'degraded' : 'ready'
}

interface Cached<T> {
  /** Waits for a new result if the last one is too old. */
  fresh(): Promise<T>
  /** The last result. A result that is too old is replaced in the background. Only the first call waits. */
  latest(): Promise<T>
}

function cached<T>(read: () => Promise<T>): Cached<T> {
  let startedAt = Number.NEGATIVE_INFINITY
  let reading: Promise<T> | undefined
  let last: Promise<T> | undefined
  const fresh = () => {
    if (!reading || Date.now() - startedAt > CACHED_MS) {
      startedAt = Date.now()
      const next = read()
      reading = next
      next.then(() => {
        last = next
      })
    }
    return reading
  }
  return {
    fresh,
    latest() {
      const next = fresh()
      return last ?? next
    },
  }
}

async function outcomeOf({ log }: AppDeps, name: string, check: PromiseLike<unknown>): Promise<Outcome> {
  try {
    await Promise.race([check, timeout()])
    return 'ok'
  } catch (error) {
    // The reason is logged, not published.
    log.warn({ check: name, reason: String(error) }, 'a readiness check failed')
    return 'failed'
  }
}

async function requireMigrated(system: System): Promise<void> {
  if (!(await isMigrated(system))) throw new Error('migrations are pending: npm run migrate')
}

async function reachTemporal(namespace: string): Promise<void> {
  await requireTemporal(temporalProfile().connectionOptions, namespace, TIMEOUT_MS)
}

const timeout = () =>
  new Promise<never>((_, reject) =>
    setTimeout(() => reject(new Error(`no response within ${TIMEOUT_MS} ms`)), TIMEOUT_MS).unref(),
  )
