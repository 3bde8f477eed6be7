import type { z } from 'zod'
import { leastRole } from '../../db/model/access/roles.ts'
import {
  cancelDelivery,
  pauseDelivery,
  rescheduleDelivery,
  resendDelivery,
  resumeDelivery,
  retargetDelivery,
  retryDelivery,
} from '../../db/outgoing/actions.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { showDelivery } from './deliveries.ts'
import {
  deliveryDetailSchema,
  deliveryParams,
  rescheduleBody,
  retargetBody,
} from './outgoing-webhook-schemas.ts'

/** The actions on one delivery. To add one: an entry here, and its function in `db/outgoing/actions.ts`. */
export const deliveryActionRoutes: AppRoute[] = [
  action({
    verb: 'resend',
    summary: 'Resend a delivery',
    description:
      'Creates a new delivery of the same event, with the same `webhook-id`. Only for a delivery that has ended.',
    act: resendDelivery,
  }),
  action({
    verb: 'retry',
    summary: 'Retry a delivery now',
    description: 'Starts the next attempt at once.',
    act: retryDelivery,
  }),
  action({
    verb: 'pause',
    summary: 'Pause a delivery',
    description:
      'Holds an open delivery (`held_for: "paused"`): no further attempt starts until it is resumed, even if the status of its webhook or the quota changes. An attempt in progress finishes.',
    act: pauseDelivery,
  }),
  action({
    verb: 'resume',
    summary: 'Resume a delivery',
    description:
      'Resumes a paused delivery: its next attempt starts when it is due. The delivery stays held if its webhook is inactive or the quota is exceeded.',
    act: resumeDelivery,
  }),
  action({
    verb: 'reschedule',
    summary: 'Reschedule a delivery',
    description:
      'Sets the time of the next attempt of an open delivery. Further retries follow the retry schedule of the webhook.',
    body: rescheduleBody,
    example: { at: '2030-01-01T09:00:00.000Z' },
    act: (tx, id, { at }) => rescheduleDelivery(tx, id, new Date(at)),
  }),
  action({
    verb: 'retarget',
    summary: 'Retarget a delivery',
    description:
      'Sends the event to another webhook, as a new delivery with the secret, the headers and the retry schedule of that webhook; the response is the new delivery. The old one is cancelled if it is open.',
    body: retargetBody,
    example: { webhook_id: '01890a5d-ac96-774b-bcce-b302099a8057' },
    act: (tx, id, { webhook_id }) => retargetDelivery(tx, id, webhook_id),
  }),
  action({
    verb: 'cancel',
    summary: 'Cancel a delivery',
    description: 'No further attempt starts.',
    act: cancelDelivery,
  }),
]

interface Action<Body> {
  verb: string
  summary: string
  description: string
  body?: z.ZodType<Body>
  example?: unknown
  /** @returns the id of the delivery to answer with. */
  act: (tx: Tenant, id: string, body: Body) => Promise<string>
}

function action<Body = unknown>({ verb, act, ...rest }: Action<Body>): AppRoute {
  return appRoute({
    ...rest,
    method: 'POST',
    path: `/deliveries/{delivery_id}/${verb}`,
    role: leastRole('webhooks:write'),
    id: `${verb}Delivery`,
    hidesLinks: true,
    tag: 'Deliveries',
    params: deliveryParams,
    response: { status: 200, schema: deliveryDetailSchema },
    handler: ({ params, body, tenant }) =>
      tenant(async (tx) => showDelivery(tx, await act(tx, params.delivery_id, body))),
  })
}
