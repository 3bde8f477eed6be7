import type { System } from '../postgres/tenancy.ts'
import { LIVE_SINCE } from '../runs/relays.ts'
import type { Release } from './moves/queue.ts'

/**
 * A delivery belongs to the relay of one worker: to that which starts its workflow, whose worker gets the first task, and
 * then to that of the worker which makes an attempt. If the relay is dead, the delivery continues in a new release, and
 * its former workflow ends: Temporal would give the first task to another worker only after 30 s, because a first attempt
 * may take half of that. A queued delivery gets its new release with the next claim (`queue.ts`), the others here.
 */

/** A delivery that a dead relay left. */
export interface Interrupted extends Release {
  relay_id: string
  attempts: number
}

/**
 * The deliveries of dead relays whose attempt nobody reports any more, or whose retry is overdue: the worker may have
 * died before it told Temporal of the attempt before. Without retries of deliveries that are older than a minute, which
 * Temporal repeats by itself, and without those that wait for a slot or for an operator.
 * @param own the relay of the process that asks: it lives, however long its reports are delayed.
 */
export async function listInterrupted(system: System, own: string | undefined): Promise<Interrupted[]> {
  const { rows } = await system.raw<{ rows: Interrupted[] }>(
    `select d.organization_id, d.id, d.releases, d.relay_id, d.attempts
     from (
       select * from deliveries where in_attempt and slot_until < now() - interval '1 second'
       union all
       select * from deliveries where status = 'delivering' and next_attempt_at < now() - interval '2 seconds'
         and coalesce(checked_at, started_at) > now() - interval '1 minute') d
     where d.relay_id in (${DEAD}) and exists (${DEAD}) and d.slot_wanted_at is null and d.held_for is null
       and d.relay_id is distinct from cast(:own as uuid)`,
    { own: own ?? null } as never,
  )
  return rows
}

/** SQL: the relays that are dead. While there is none, the statement reads no deliveries. */
const DEAD = `select id from relays where seen_at <= ${LIVE_SINCE}`
