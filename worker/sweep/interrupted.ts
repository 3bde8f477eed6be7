import { SYSTEM } from '../../db/model/actor.ts'
import { type Interrupted, listInterrupted } from '../../db/outgoing/interrupted.ts'
import { requeueDelivery } from '../../db/outgoing/moves/attempts.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'

/** A relay reports itself every second, and a worker renews the slots of its attempts every two seconds. */
const SEEN_MS = 3_000

/**
 * Requeues the deliveries of dead relays. Each is checked twice: after an outage of PostgreSQL, live relays report
 * themselves between the two checks.
 */
export class InterruptedDeliveries {
  private readonly db: Database
  private readonly log: Logger
  private readonly relayId: string | undefined
  /** When an interrupted attempt was seen first, by delivery and attempt. */
  private seen = new Map<string, number>()

  /** @param deps.relayId the relay of this process, if it has one. */
  constructor({ db, log, relayId }: { db: Database; log: Logger; relayId?: string | undefined }) {
    this.db = db
    this.log = log
    this.relayId = relayId
  }

  async look(now = performance.now()): Promise<void> {
    const found = await listInterrupted(this.db.system, this.relayId)
    this.seen = new Map(found.map((one) => [keyOf(one), this.seen.get(keyOf(one)) ?? now]))
    for (const one of found) {
      if (now - this.seen.get(keyOf(one))! < SEEN_MS) continue
      const { organization_id, id, attempts } = one
      const moved = await this.db.tenant(organization_id, SYSTEM, (tx) => requeueDelivery(tx, one))
      if (moved)
        this.log.warn(
          { organization_id, delivery_id: id, attempt: attempts },
          'the worker of a delivery no longer reports itself; another attempt follows',
        )
    }
  }
}

const keyOf = ({ id, attempts }: Interrupted) => `${id} ${attempts}`
