import { SYSTEM } from '../../db/model/actor.ts'
import { type Interrupted, listInterrupted } from '../../db/outgoing/interrupted.ts'
import { requeueDelivery } from '../../db/outgoing/moves/attempts.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'

/**
 * Longer than the two seconds at which workers renew the slots of their attempts, also after an outage of PostgreSQL.
 */
const SEEN_MS = 3_000

/**
 * Requeues the deliveries whose worker died during or right after an attempt. A first attempt is part of a workflow
 * task, which Temporal gives to another worker only after 30 s, because an attempt may take half of that. A live worker
 * renews the lease of the attempt's slot: a lease that is not renewed between two checks is an interrupted attempt.
 */
export class InterruptedDeliveries {
  private readonly db: Database
  private readonly log: Logger
  /** When an interrupted attempt was seen first, by delivery and attempt. */
  private seen = new Map<string, number>()

  constructor({ db, log }: { db: Database; log: Logger }) {
    this.db = db
    this.log = log
  }

  async look(now = performance.now()): Promise<void> {
    const found = await listInterrupted(this.db.system)
    this.seen = new Map(found.map((one) => [keyOf(one), this.seen.get(keyOf(one)) ?? now]))
    for (const one of found) {
      if (now - this.seen.get(keyOf(one))! < SEEN_MS) continue
      const { organization_id, id, attempts } = one
      const moved = await this.db.tenant(organization_id, SYSTEM, (tx) => requeueDelivery(tx, one))
      if (moved)
        this.log.warn(
          { organization_id, delivery_id: id, attempt: attempts },
          'the worker of a delivery is gone',
        )
    }
  }
}

const keyOf = ({ id, attempts }: Interrupted) => `${id} ${attempts}`
