import { includesRole } from '../../../db/model/access/roles.ts'
import { type DeliveryStatus, isDeliveryEnd } from '../../../db/model/outgoing/statuses.ts'
import { ActionButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Copyable, Json } from '../components/code.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Status } from '../components/status.tsx'
import { Duration, Time } from '../components/time.tsx'
import type { ConsoleRoute, Page, View } from '../route.ts'

export interface Delivery {
  id: string
  webhook_id: string
  message_id: string
  event: string
  record_id: string | null
  test: boolean
  status: DeliveryStatus
  held_for: string | null
  attempt_count: number
  http_status: number | null
  next_attempt_at: string | null
  error: string | null
  created_at: string
  ended_at: string | null
}

interface Details extends Delivery {
  data: unknown
  previous: unknown
  attempts: {
    attempt: number
    status: string
    started_at: string
    http_status: number | null
    duration_ms: number | null
    response_headers: Record<string, string> | null
    response_body: string | null
    error: string | null
  }[]
}

const VERBS = ['resend', 'retry', 'pause', 'resume', 'cancel'] as const
const WORDS: Record<(typeof VERBS)[number], string> = {
  resend: 'Send again',
  retry: 'Try now',
  pause: 'Pause',
  resume: 'Resume',
  cancel: 'Cancel',
}

/** One delivery with its attempts. */
export const deliveryPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/settings/deliveries/{delivery_id}',
    handler: async (view) =>
      page(view, await view.read<Details>(`/app/deliveries/${view.params.delivery_id}`)),
  },
  ...VERBS.map(
    (verb): ConsoleRoute => ({
      method: 'POST',
      path: `/settings/deliveries/{delivery_id}/${verb}`,
      async handler({ change, params }) {
        const { id } = await change<Delivery>('POST', `/app/deliveries/${params.delivery_id}/${verb}`)
        return { redirect: `/settings/deliveries/${id}?done=${verb === 'resend' ? 'resent' : 'changed'}` }
      },
    }),
  ),
]

/** What the API accepts in this state; it decides. */
function verbsFor({ status, held_for }: Delivery): readonly (typeof VERBS)[number][] {
  if (isDeliveryEnd(status)) return ['resend']
  return held_for === 'paused' ? ['resume', 'cancel'] : ['retry', 'pause', 'cancel']
}

function page({ session }: View, delivery: Details): Page {
  const { id, webhook_id, event } = delivery
  const up = { href: `/settings/webhooks/outgoing/${webhook_id}`, label: 'Webhook' }
  return {
    title: `Delivery of ${event}`,
    content: (
      <>
        <PageHeader
          title={event}
          crumbs={[{ href: '/settings/webhooks/outgoing', label: 'Outgoing webhooks' }, up]}
        >
          {includesRole(session!.role, 'admin') &&
            verbsFor(delivery).map((verb) => (
              <ActionButton key={verb} action={`/settings/deliveries/${id}/${verb}`}>
                {WORDS[verb]}
              </ActionButton>
            ))}
        </PageHeader>
        {delivery.error && (
          <p class="notice red">
            <Icon name="circle-x" /> {delivery.error}
          </p>
        )}
        <div class="columns">
          <AttemptsCard attempts={delivery.attempts} />
          <div class="stack">
            <Card title="Delivery">
              <Facts
                of={[
                  ['Status', <Status of={delivery.status} key="status" />],
                  ['Held for', delivery.held_for],
                  [
                    'Next attempt',
                    delivery.next_attempt_at && <Time at={delivery.next_attempt_at} absolute />,
                  ],
                  ['Created', <Time at={delivery.created_at} absolute key="created" />],
                  ['Ended', delivery.ended_at && <Time at={delivery.ended_at} absolute />],
                  [
                    'webhook-id',
                    <Copyable text={delivery.message_id} label="the message id" key="message" />,
                  ],
                ]}
              />
            </Card>
            <Card title="Data">
              <Json value={delivery.data} label="the data" />
              {delivery.previous !== null && (
                <>
                  <h3>Before</h3>
                  <Json value={delivery.previous} label="the previous values" />
                </>
              )}
            </Card>
          </div>
        </div>
      </>
    ),
  }
}

/** The last attempt first, and open. */
function AttemptsCard({ attempts }: Pick<Details, 'attempts'>) {
  return (
    <Card title="Attempts" flush>
      {attempts.length === 0 && <p class="muted">None yet.</p>}
      <div class="rows">
        {[...attempts].reverse().map((attempt, i) => (
          <details key={attempt.attempt} id={`attempt-${attempt.attempt}`} open={i === 0}>
            <summary>
              <Icon name="chevron-right" />
              <span class="number">#{attempt.attempt}</span>
              <Status of={attempt.status} />
              <span class="grow">{attempt.error ?? ''}</span>
              <span class="number">{attempt.http_status}</span>
              <Duration ms={attempt.duration_ms} />
              <Time at={attempt.started_at} />
            </summary>
            <div class="inside">
              {attempt.response_body === null && attempt.response_headers === null && (
                <p class="muted">There was no response.</p>
              )}
              {attempt.response_headers && <Json value={attempt.response_headers} label="the headers" />}
              {attempt.response_body && <Json value={attempt.response_body} label="the body" />}
            </div>
          </details>
        ))}
      </div>
    </Card>
  )
}
