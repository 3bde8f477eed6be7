import { Connection } from '@temporalio/client'
import { loadClientConnectConfig } from '@temporalio/envconfig'
import { isMigrated } from '../db/migrate.ts'
import type { AppDeps } from './deps.ts'

export interface Readiness {
  status: 'ready' | 'not_ready'
  checks: { database: string; migrations: string; temporal: string }
}

const CACHED_MS = 2_000
const TIMEOUT_MS = 2_000

/** Whether this process can do its work: the database answers and is migrated, and Temporal can be reached. */
export class Health {
  private connection: Connection | undefined
  private last: { at: number; readiness: Promise<Readiness> } | undefined
  private readonly deps: AppDeps

  constructor(deps: AppDeps) {
    this.deps = deps
  }

  /** Cheap to ask as often as one likes: the answer may be two seconds old. */
  ready(): Promise<Readiness> {
    if (!this.last || Date.now() - this.last.at > CACHED_MS)
      this.last = { at: Date.now(), readiness: this.look() }
    return this.last.readiness
  }

  async close(): Promise<void> {
    await this.connection?.close()
  }

  private async look(): Promise<Readiness> {
    const [database, migrations, temporal] = await Promise.all([
      outcome(this.deps.db.system.raw('select 1')),
      outcome(this.migrations()),
      outcome(this.temporal()),
    ])
    const checks = { database, migrations, temporal }
    const ready = Object.values(checks).every((check) => check === 'ok')
    return { status: ready ? 'ready' : 'not_ready', checks }
  }

  private async migrations(): Promise<void> {
    if (!(await isMigrated(this.deps.db.system))) throw new Error('pending')
  }

  private async temporal(): Promise<void> {
    this.connection ??= Connection.lazy(loadClientConnectConfig().connectionOptions)
    await this.connection.withDeadline(Date.now() + TIMEOUT_MS, () =>
      this.connection!.workflowService.getSystemInfo({}),
    )
  }
}

/** `ok`, or `failed`: why is for the log, not for whoever asks. */
async function outcome(check: PromiseLike<unknown>): Promise<string> {
  const late = new Promise<string>((resolve) => setTimeout(resolve, TIMEOUT_MS, 'failed').unref())
  return Promise.race([
    Promise.resolve(check).then(
      () => 'ok',
      () => 'failed',
    ),
    late,
  ])
}
