import { EVENT_TIME } from '../events/outbox.ts'

/** SQL: the body of the deliveries of the event `e`. `json` keeps the order of the members. */
export const DELIVERY_BODY = `json_build_object('id', e.id, 'event', e.name, 'data', e.data, 'previous', e.previous,
  'created_at', ${EVENT_TIME})`
