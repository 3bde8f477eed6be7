import type { Knex } from 'knex'
import { createTurns } from '../../workflows/compute/turns.ts'
import type { Scope } from '../../workflows/expressions/liquid.ts'
import { evaluateWhen } from '../../workflows/interpret/when.ts'
import { TRIGGER_WHEN } from '../../workflows/limits.ts'
import { EVENTS_BY_KEY, keysOf } from '../events/by-key.ts'
import { DELIVERY_BODY } from './body.ts'
import type { Subscription } from './match.ts'

/** An event and an endpoint that subscribes to it under a condition. */
export type Conditional = Subscription & { when: string | null }

/** Milliseconds for the conditions of one batch, which must not keep its transaction open for long. */
const BUDGET_MS = 250
/** Events whose data is loaded at once. */
const CHUNK = 50

/**
 * Selects the subscriptions whose condition holds. One that cannot be evaluated, such as for a missing value, does not
 * hold; a replay of what was missed finds the event after the condition was corrected.
 * @param subscriptions in the order of the events.
 * @returns them, and the first event that is left for the next batch, if the time is used up.
 */
export async function selectByCondition<T extends Conditional>(
  trx: Knex,
  subscriptions: T[],
): Promise<{ selected: T[]; since?: string }> {
  const selected: T[] = []
  let bodies = new Map<string, Scope>()
  let loaded = 0
  const conditional = subscriptions.filter(({ when }) => when !== null)
  const events = [...new Map(conditional.map((one) => [one.event_id, one])).values()]
  const turn = createTurns()
  let spent = 0
  let before: string | undefined
  for (const subscription of subscriptions) {
    const { when, event_id } = subscription
    // Whole events only, because the batch puts back whole events.
    if (spent >= BUDGET_MS && event_id !== before) return { selected, since: event_id }
    before = event_id
    if (when === null) {
      selected.push(subscription)
      continue
    }
    if (!bodies.has(event_id)) {
      bodies = await loadBodies(trx, events.slice(loaded, loaded + CHUNK))
      loaded += CHUNK
    }
    await turn()
    const begun = performance.now()
    const body = bodies.get(event_id)
    if (!body || evaluateWhen(when, body, TRIGGER_WHEN) === true) selected.push(subscription)
    spent += performance.now() - begun
  }
  return { selected }
}

/** The bodies of deliveries of these events, by event. */
async function loadBodies(trx: Knex, subscriptions: Subscription[]): Promise<Map<string, Scope>> {
  const { rows } = await trx.raw<{ rows: { body: Scope & { id: string } }[] }>(
    `select ${DELIVERY_BODY} as body from ${EVENTS_BY_KEY}`,
    keysOf(subscriptions),
  )
  return new Map(rows.map(({ body }) => [body.id, body]))
}
