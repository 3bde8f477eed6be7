import { DELIVERY_STATUSES } from '../../../db/model/outgoing/statuses.ts'
import { ActionButton, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Chips } from '../components/chips.tsx'
import { Copyable } from '../components/code.tsx'
import { DeliveryTable } from '../components/delivery-table.tsx'
import { ChoiceFilter, DateFilter, Filters, TextFilter } from '../components/filters.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm, textOf } from '../components/schema-form.tsx'
import { Secret } from '../components/secret.tsx'
import { Status } from '../components/status.tsx'
import { Duration, Time } from '../components/time.tsx'
import { mayChangeWebhooks, webhookList } from '../components/webhook-list.tsx'
import { errorsOf } from '../forms/errors.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { storedBefore, toBody } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import type { Delivery } from './deliveries.tsx'

interface Endpoint {
  id: string
  name: string
  url: string
  events: string[]
  status: 'Active' | 'Inactive'
  status_reason: string | null
  failing_since: string | null
  header_names: string[]
  when: string | null
  ordered: boolean
  retry_schedule: number[] | null
  timeout_ms: number
  concurrency: number
  rate_per_minute: number | null
  created_at: string
}

const ROOT = '/settings/webhooks/outgoing'
const HERE = { href: ROOT, label: 'Outgoing webhooks' }
const NAMES = [
  'name',
  'url',
  'events',
  'headers',
  'when',
  'ordered',
  'retry_schedule',
  'timeout_ms',
  'concurrency',
  'rate_per_minute',
]
/** The default schedule is what an empty field means here, and not no retry. */
const NEW = fieldsOf('createOutgoingWebhook', NAMES).map((field) => ({
  ...field,
  help: field.help.replace('; empty for no retry', ''),
}))
/** The values of headers are never shown: they are changed by the API, or by a new webhook. */
const EDITED = NEW.filter(({ name }) => name !== 'headers')

export const outgoingPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: ROOT,
    handler: async (view) =>
      listPage(view, await view.read<List<Endpoint>>(pageOf(view, '/app/webhooks/outgoing'))),
  },
  { method: 'GET', path: `${ROOT}/new`, formOf: 'createOutgoingWebhook', handler: async () => formPage({}) },
  {
    method: 'POST',
    path: ROOT,
    async handler({ form, call }) {
      const body = toBody(NEW, form, { omitEmpty: true })
      const answer = await call('POST', '/app/webhooks/outgoing', body)
      if (answer.status >= 400)
        return formPage({ typed: form, errors: errorsOf(answer, NAMES) }, answer.status)
      return madePage(answer.body as unknown as Endpoint & { secret: string })
    },
  },
  {
    method: 'GET',
    path: `${ROOT}/{webhook_id}`,
    async handler(view) {
      const path = `/app/webhooks/outgoing/${view.params.webhook_id}`
      const [endpoint, deliveries] = await Promise.all([
        view.read<Endpoint>(path),
        view.read<List<Delivery>>(
          pageOf(view, `${path}/deliveries`, ['status', 'event', 'code', 'from', 'to']),
        ),
      ])
      return onePage(view, endpoint, deliveries)
    },
  },
  {
    method: 'GET',
    path: `${ROOT}/{webhook_id}/edit`,
    formOf: 'updateOutgoingWebhook',
    async handler({ read, params }) {
      const endpoint = await read<Endpoint>(`/app/webhooks/outgoing/${params.webhook_id}`)
      return editPage(endpoint, {})
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{webhook_id}`,
    async handler({ form, call, read, params }) {
      const path = `/app/webhooks/outgoing/${params.webhook_id}`
      const stored = storedBefore(form)
      const answer = await call('PATCH', path, toBody(EDITED, form, { stored }))
      if (answer.status < 400) return { redirect: `${ROOT}/${params.webhook_id}?done=saved` }
      return editPage(
        await read<Endpoint>(path),
        { typed: form, errors: errorsOf(answer, NAMES) },
        answer.status,
      )
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{webhook_id}/delete`,
    async handler({ change, params }) {
      await change('DELETE', `/app/webhooks/outgoing/${params.webhook_id}`)
      return { redirect: `${ROOT}?done=removed` }
    },
  },
  action('activate', 'activated'),
  action('deactivate', 'deactivated'),
  action('test', 'sent'),
  {
    method: 'POST',
    path: `${ROOT}/{webhook_id}/rotate-secret`,
    async handler({ change, params }) {
      return madePage(await change('POST', `/app/webhooks/outgoing/${params.webhook_id}/rotate-secret`, {}))
    },
  },
]

function action(verb: string, done: string): ConsoleRoute {
  return {
    method: 'POST',
    path: `${ROOT}/{webhook_id}/${verb}`,
    async handler({ change, params }) {
      await change('POST', `/app/webhooks/outgoing/${params.webhook_id}/${verb}`)
      return { redirect: `${ROOT}/${params.webhook_id}?done=${done}` }
    },
  }
}

/** `failing`: active, but since a while without a success. */
const healthOf = ({ status, failing_since }: Endpoint) =>
  status === 'Active' && failing_since ? 'failing' : status

const listPage = (view: View, endpoints: List<Endpoint>): Page =>
  webhookList(view, endpoints, {
    root: ROOT,
    kind: 'outgoing',
    icon: 'send',
    about:
      'Sends a signed request to another service when something happens here, and repeats it until it arrives.',
    none: (
      <>
        Other services learn of new contacts, won deals or failed runs as they happen. How receivers verify
        the signature: <a href="/docs/webhooks">guide for receivers</a>.
      </>
    ),
    columns: [
      { title: 'URL', cell: ({ url }) => <code title={url}>{url}</code> },
      {
        title: 'Events',
        cell: ({ events }) => <span title={events.join(', ')}>{events.join(', ')}</span>,
      },
      { title: 'Health', cell: (one) => <Status of={healthOf(one)} /> },
      {
        title: 'Failing since',
        cell: (one) => (one.failing_since ? <Time at={one.failing_since} /> : ''),
      },
    ],
  })

const formPage = (state: FormState, status = 200): Page => ({
  title: 'New outgoing webhook',
  status,
  content: (
    <>
      <PageHeader title="New outgoing webhook" crumbs={[HERE]} />
      <SchemaForm
        action={ROOT}
        fields={NEW}
        state={state}
        button="Make the webhook"
        cancel={ROOT}
        label="New outgoing webhook"
      />
    </>
  ),
})

const editPage = (endpoint: Endpoint, state: FormState, status = 200): Page => ({
  title: `Edit ${endpoint.name}`,
  status,
  content: (
    <>
      <PageHeader title="Edit" crumbs={[HERE, { href: `${ROOT}/${endpoint.id}`, label: endpoint.name }]} />
      <SchemaForm
        action={`${ROOT}/${endpoint.id}`}
        fields={EDITED}
        state={{ stored: storedIn(endpoint), ...state }}
        button="Save"
        cancel={`${ROOT}/${endpoint.id}`}
        label={`Edit ${endpoint.name}`}
      />
    </>
  ),
})

const storedIn = (endpoint: Endpoint) =>
  Object.fromEntries(EDITED.map(({ name }) => [name, textOf(endpoint[name as keyof Endpoint])]))

const madePage = (endpoint: Endpoint & { secret: string }): Page => ({
  title: endpoint.name,
  status: 201,
  content: (
    <>
      <PageHeader title={endpoint.name} crumbs={[HERE]} />
      <Secret label="The signing secret" text={endpoint.secret}>
        <p>
          The receiver verifies with it that requests come from here: <a href="/docs/webhooks">how</a>.
        </p>
      </Secret>
      <div class="actions">
        <LinkButton href={`${ROOT}/${endpoint.id}`} look="primary">
          Go to the webhook
        </LinkButton>
      </div>
    </>
  ),
})

function onePage(view: View, endpoint: Endpoint, deliveries: List<Delivery>): Page {
  const path = `${ROOT}/${endpoint.id}`
  return {
    title: endpoint.name,
    content: (
      <>
        <PageHeader title={<span dir="auto">{endpoint.name}</span>} crumbs={[HERE]}>
          {mayChangeWebhooks(view) && <Actions of={endpoint} />}
        </PageHeader>
        {endpoint.status_reason && (
          <p class="notice amber">
            The service turned it off: {endpoint.status_reason}. Deliveries are held until it is active.
          </p>
        )}
        <Card title="Settings" actions={mayChangeWebhooks(view) && <a href={`${path}/edit`}>Edit</a>}>
          <Facts
            of={[
              ['Health', <HealthOf endpoint={endpoint} key="health" />],
              ['URL', <Copyable text={endpoint.url} label="the URL" key="url" />],
              ['Events', <Chips of={endpoint.events} key="events" />],
              ['Condition', endpoint.when && <code>{endpoint.when}</code>],
              ['Headers', endpoint.header_names.length > 0 && endpoint.header_names.join(', ')],
              ['Order', endpoint.ordered ? 'per record' : 'none'],
              [
                'Retries',
                endpoint.retry_schedule?.map((seconds) => `${seconds} s`).join(', ') ??
                  'the default schedule',
              ],
              [
                'Limits',
                <>
                  <Duration ms={endpoint.timeout_ms} /> an attempt, {endpoint.concurrency} at a time
                  {endpoint.rate_per_minute && `, ${endpoint.rate_per_minute} a minute`}
                </>,
              ],
            ].map(([name, value]) => [name as string, value || null])}
          />
        </Card>
        <h2>Deliveries</h2>
        <Filters>
          <ChoiceFilter name="status" choices={DELIVERY_STATUSES} />
          <TextFilter name="event" />
          <TextFilter name="code" label="HTTP status" />
          <DateFilter name="from" label="From (UTC)" />
          <DateFilter name="to" label="To (UTC)" />
        </Filters>
        <DeliveryTable deliveries={deliveries} />
      </>
    ),
  }
}

const HealthOf = ({ endpoint }: { endpoint: Endpoint }) => (
  <>
    <Status of={healthOf(endpoint)} />
    {endpoint.failing_since && (
      <>
        {' '}
        no success since <Time at={endpoint.failing_since} />
      </>
    )}
  </>
)

function Actions({ of: { id, name, status } }: { of: Endpoint }) {
  const path = `${ROOT}/${id}`
  return (
    <>
      <ActionButton action={`${path}/test`} icon="send">
        Send a test event
      </ActionButton>
      {status === 'Active' ? (
        <ConfirmButton
          action={`${path}/deactivate`}
          question="New and open deliveries are held until it is active again. Nothing is lost."
          confirm="Deactivate"
        >
          Deactivate
        </ConfirmButton>
      ) : (
        <ActionButton action={`${path}/activate`} look="primary">
          Activate
        </ActionButton>
      )}
      <ConfirmButton
        action={`${path}/rotate-secret`}
        question="Makes a new signing secret. Requests are signed with both for 24 hours."
        confirm="Rotate the secret"
      >
        Rotate the secret
      </ConfirmButton>
      <ConfirmButton
        action={`${path}/delete`}
        question={`Deletes “${name}” with all its deliveries, also the open ones. This cannot be undone.`}
        confirm="Delete the webhook"
        look="danger"
      >
        Delete
      </ConfirmButton>
    </>
  )
}
