import type { Knex } from 'knex'
import type { Scope } from '../../workflows/language/expressions/liquid.ts'
import { EVENTS_BY_KEY, keysOf } from '../events/by-key.ts'
import { type Conditional, evaluateConditions } from '../model/events/conditions.ts'
import type { EventKey } from '../model/events/event.ts'
import { ORGANIZATION_FACTS } from '../runs/state.ts'
import { DELIVERY_BODY } from './body.ts'

/**
 * Selects the subscriptions whose condition holds. A condition that cannot be evaluated, for example because a value is
 * missing, does not hold; once it is corrected, a replay of missed events finds the event.
 * @param subscriptions in the order of the events.
 * @returns the selected subscriptions, and the first event that is left for the next batch if the time is used up.
 */
export async function selectByCondition<T extends Conditional>(
  trx: Knex,
  subscriptions: T[],
): Promise<{ selected: T[]; since: string | undefined }> {
  const selected: T[] = []
  const since = await evaluateConditions(
    subscriptions,
    (events) => loadBodies(trx, events),
    (subscription, holds) => {
      if (holds === true) selected.push(subscription)
    },
  )
  return { selected, since }
}

/** The bodies of the deliveries of these events, by event id; `org` has the time zone in which days are compared. */
async function loadBodies(trx: Knex, events: EventKey[]): Promise<Map<string, Scope>> {
  const { rows } = await trx.raw<{ rows: { body: Scope & { id: string }; org: Scope }[] }>(
    `select ${DELIVERY_BODY} as body, ${ORGANIZATION_FACTS} as org
     from ${EVENTS_BY_KEY} join organizations o on o.id = e.organization_id`,
    keysOf(events),
  )
  return new Map(rows.map(({ body, org }) => [body.id, { ...body, org }]))
}
