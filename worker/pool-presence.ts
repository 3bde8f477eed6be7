import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { NativeConnection, Worker } from '@temporalio/worker'
import type { Database } from '../db/postgres/connect.ts'
import type { Logger } from '../db/process/log.ts'
import { requireTemporalAnswers } from '../db/process/temporal-answers.ts'
import { endPoolWorker, POOL_BEAT_MS, seePoolWorker } from '../db/queue/pool-workers.ts'

interface PresenceDeps {
  db: Database
  log: Logger
  pool: string
  connection: NativeConnection
  namespace: string
  worker: Worker
}

const TIMEOUT_MS = 2_000

/**
 * Reports that the worker of a pool is alive as long as it runs and Temporal answers it. The sweep says of runs whose
 * pool has no worker that they wait for one.
 */
export class PoolPresence {
  private readonly deps: PresenceDeps
  private readonly id = randomUUID()
  private readonly closing = new AbortController()
  private beating: Promise<void> | undefined

  constructor(deps: PresenceDeps) {
    this.deps = deps
  }

  start(): void {
    this.beating = this.beat()
  }

  async close(): Promise<void> {
    this.closing.abort()
    await this.beating
    const { db, log } = this.deps
    await endPoolWorker(db.system, { id: this.id }).catch((err) =>
      log.warn({ err }, 'the end of a pool worker could not be reported'),
    )
  }

  private async beat(): Promise<void> {
    const { signal } = this.closing
    const { db, log, pool, connection, namespace, worker } = this.deps
    while (!signal.aborted) {
      try {
        if (worker.getState() === 'RUNNING') {
          await requireTemporalAnswers(connection, namespace, TIMEOUT_MS)
          await seePoolWorker(db.system, { id: this.id, pool })
        }
      } catch (error) {
        log.warn({ pool, reason: String(error) }, 'a pool worker could not report that it is alive')
      }
      await setTimeout(POOL_BEAT_MS, undefined, { signal }).catch(() => {})
    }
  }
}
