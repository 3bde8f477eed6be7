import type { EventKey } from '../model/events/event.ts'

/** SQL: the events `e` of `keysOf`; `k.place` is their position in it, from 1. */
export const EVENTS_BY_KEY = `unnest(cast(:organizationIds as uuid[]), cast(:eventIds as uuid[])) with ordinality as k(organization_id, id, place)
     join events e on e.organization_id = k.organization_id and e.id = k.id`

export const keysOf = (events: EventKey[]) => ({
  organizationIds: events.map(({ organization_id }) => organization_id),
  eventIds: events.map(({ event_id }) => event_id),
})
