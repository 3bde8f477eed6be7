import type { System } from '../postgres/tenancy.ts'
import { HAS_DIED } from '../runs/relays.ts'
import type { Release } from './moves/queue.ts'

/** A delivery that a worker left when it died. */
export interface Interrupted extends Release {
  /** The number of its last attempt; 0 if the first one has not begun. */
  attempts: number
}

/**
 * The deliveries whose attempt a worker began, or was to begin, and whose lease has expired; and, after the death of a
 * worker, those whose first retry is overdue: it may have died before it told Temporal of the first attempt. Only attempts
 * of the last minute, and starts of a first release, so that a delivery that waits long for its next worker is not queued
 * again and again; the sweep finds older ones.
 */
export async function listInterrupted(system: System): Promise<Interrupted[]> {
  const { rows } = await system.raw<{ rows: Interrupted[] }>(
    `select d.organization_id, d.id, d.releases, d.attempts
     from deliveries d
     left join delivery_attempts a
       on a.organization_id = d.organization_id and a.delivery_id = d.id and a.attempt = d.attempts
     where d.in_attempt and d.slot_until < now() - interval '1 second'
       and case when d.attempts = 0 then d.releases = 0 else a.status = 'unknown' end
       and coalesce(a.started_at, d.started_at) > now() - interval '1 minute'
     union all
     select d.organization_id, d.id, d.releases, d.attempts
     from deliveries d
     where ${HAS_DIED} and d.status = 'delivering' and coalesce(d.checked_at, d.started_at) > now() - interval '1 minute'
       and d.attempts = 1 and d.next_attempt_at < now() - interval '2 seconds'
       and d.slot_wanted_at is null and d.held_for is null`,
  )
  return rows
}
