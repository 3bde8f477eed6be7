import { ActionButton, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Code, Copyable } from '../components/code.tsx'
import { IncomingLog } from '../components/incoming-log.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm, textOf } from '../components/schema-form.tsx'
import { Secret } from '../components/secret.tsx'
import { Status } from '../components/status.tsx'
import { mayChangeWebhooks, webhookList } from '../components/webhook-list.tsx'
import { errorsOf } from '../forms/errors.ts'
import type { FieldSpec } from '../forms/field-spec.ts'
import type { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { storedBefore, toBody } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import type { LogEntry } from './incoming-logs.tsx'

interface Webhook {
  id: string
  name: string
  description: string
  url: string
  status: 'Active' | 'Inactive'
  target_entity: string
  also_writes: string[]
  sender: string | null
  deduplication: { action: string; by: string }
  verification: { type: string }
  ip_whitelist: string[]
  rate_limit: number
  burst: number
  workflow_id: string | null
  /** Why the polls of its source fail. */
  poll_problem: string | null
  /** Which rules write nothing, and which requests are of another sender; not in lists. */
  problem?: string | null
  created_at: string
}

interface Workflow {
  workflow_id: string
  name: string
}

const ROOT = '/settings/webhooks/incoming'
const HERE = { href: ROOT, label: 'Incoming webhooks' }
const SHARED = ['name', 'description', 'target_entity', 'ip_whitelist', 'rate_limit', 'burst', 'workflow_id']
const LABELS = { workflow_id: 'Workflow to start' }
const DEDUPLICATION = deduplicationFields()
const NEW = [...fieldsOf('createIncomingWebhook', ['sender', ...SHARED], LABELS), ...DEDUPLICATION]
// Without a value the sender is cleared.
const EDITED = [
  ...fieldsOf('updateIncomingWebhook', ['sender']),
  ...NEW.filter(({ name }) => name !== 'sender'),
]
const NAMES = NEW.map(({ name }) => name)

/** The members of `deduplication`, as fields of their own. */
function deduplicationFields(): FieldSpec[] {
  const base = { max: undefined, references: undefined, required: true, nullable: false }
  return [
    {
      ...base,
      name: 'deduplication.action',
      label: 'If the record exists already',
      help: '',
      type: 'choice',
      choices: ['Update', 'Skip', 'Create Anyway'],
      initial: 'Update',
    },
    {
      ...base,
      name: 'deduplication.by',
      label: 'It is the same record by',
      help: '`email`, `external_id`, `custom_fields.<name>` of a unique field, or `payload.<path>`.',
      type: 'text',
      choices: [],
      initial: 'email',
    },
  ]
}

export const incomingPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: ROOT,
    handler: async (view) =>
      listPage(view, await view.read<List<Webhook>>(pageOf(view, '/app/webhooks/incoming'))),
  },
  {
    method: 'GET',
    path: `${ROOT}/new`,
    formOf: 'createIncomingWebhook',
    handler: async (view) => formPage(await workflowsOf(view), {}),
  },
  {
    method: 'POST',
    path: ROOT,
    async handler(view) {
      const { form, call } = view
      const answer = await call('POST', '/app/webhooks/incoming', toBody(NEW, form, { omitEmpty: true }))
      if (answer.status < 400) return madePage(answer.body as unknown as Made)
      return formPage(
        await workflowsOf(view),
        { typed: form, errors: errorsOf(answer, NAMES) },
        answer.status,
      )
    },
  },
  {
    method: 'GET',
    path: `${ROOT}/{webhook_id}`,
    async handler(view) {
      const path = `/app/webhooks/incoming/${view.params.webhook_id}`
      const logs = pageOf(view, `${path}/logs`, ['status', 'action', 'source_ip', 'from', 'to'])
      const [webhook, log] = await Promise.all([
        view.read<Webhook>(path),
        view.readIfAllowed<List<LogEntry>>(logs),
      ])
      return onePage(view, webhook, log)
    },
  },
  {
    method: 'GET',
    path: `${ROOT}/{webhook_id}/edit`,
    formOf: 'updateIncomingWebhook',
    async handler(view) {
      const webhook = await view.read<Webhook>(`/app/webhooks/incoming/${view.params.webhook_id}`)
      return editPage(await workflowsOf(view), webhook, {})
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{webhook_id}`,
    async handler(view) {
      const { form, call, read, params } = view
      const path = `/app/webhooks/incoming/${params.webhook_id}`
      const answer = await call('PATCH', path, changesIn(form, await read<Webhook>(path)))
      if (answer.status < 400) return { redirect: `${ROOT}/${params.webhook_id}?done=saved` }
      const state = { typed: form, errors: errorsOf(answer, NAMES) }
      return editPage(await workflowsOf(view), await read<Webhook>(path), state, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{webhook_id}/status`,
    async handler({ change, form, params }) {
      const status = form.get('status')
      await change('PATCH', `/app/webhooks/incoming/${params.webhook_id}`, { status })
      const done = status === 'Active' ? 'activated' : 'deactivated'
      return { redirect: `${ROOT}/${params.webhook_id}?done=${done}` }
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{webhook_id}/rotate-secret`,
    handler: async ({ change, params }) =>
      madePage(await change('POST', `/app/webhooks/incoming/${params.webhook_id}/rotate-secret`, {})),
  },
  {
    method: 'POST',
    path: `${ROOT}/{webhook_id}/delete`,
    async handler({ change, params }) {
      await change('DELETE', `/app/webhooks/incoming/${params.webhook_id}`)
      return { redirect: `${ROOT}?done=removed` }
    },
  },
]

type Made = Webhook & { secret: string; url_with_token?: string }

const workflowsOf = async ({ read }: View) =>
  (await read<List<Workflow>>('/app/v1/workflows?limit=200')).data.map(({ workflow_id, name }) => ({
    id: workflow_id,
    name,
  }))

/** The changed fields; `deduplication` is replaced as a whole. */
function changesIn(form: Form, webhook: Webhook) {
  const { description, ...body } = toBody(EDITED, form, { stored: storedBefore(form) })
  return {
    ...body,
    ...(description !== undefined && { description: description ?? '' }),
    ...(body.deduplication !== undefined && {
      deduplication: { ...webhook.deduplication, ...(body.deduplication as object) },
    }),
  }
}

const listPage = (view: View, webhooks: List<Webhook>): Page =>
  webhookList(view, webhooks, {
    root: ROOT,
    kind: 'incoming',
    icon: 'inbox',
    about:
      'An address that takes data from a form or another service, makes records of it and starts a workflow.',
    none: (
      <>
        Form builders, shops and calendars send what they know to its URL, and it becomes a contact, company,
        deal or task. <a href="/docs/incoming-webhooks">Read more</a>
      </>
    ),
    columns: [
      {
        title: 'Status',
        cell: ({ status, poll_problem }) => (
          <>
            <Status of={status} />{' '}
            {poll_problem && <span title={poll_problem}>its source has a problem</span>}
          </>
        ),
      },
      { title: 'Makes', cell: ({ target_entity }) => target_entity },
      { title: 'Verified by', cell: ({ verification }) => verification.type },
      { title: 'URL', cell: ({ url }) => <code title={url}>{url}</code> },
    ],
  })

type Options = { id: string; name: string }[]

const formPage = (workflows: Options, state: FormState, status = 200): Page => ({
  title: 'New incoming webhook',
  status,
  content: (
    <>
      <PageHeader title="New incoming webhook" crumbs={[HERE]} />
      <SchemaForm
        action={ROOT}
        fields={NEW}
        state={state}
        options={{ workflow_id: workflows }}
        button="Make the webhook"
        cancel={ROOT}
        label="New incoming webhook"
      />
    </>
  ),
})

const editPage = (workflows: Options, webhook: Webhook, state: FormState, status = 200): Page => ({
  title: `Edit ${webhook.name}`,
  status,
  content: (
    <>
      <PageHeader title="Edit" crumbs={[HERE, { href: `${ROOT}/${webhook.id}`, label: webhook.name }]} />
      <SchemaForm
        action={`${ROOT}/${webhook.id}`}
        fields={EDITED}
        state={{ stored: storedIn(webhook), ...state }}
        options={{ workflow_id: workflows }}
        button="Save"
        cancel={`${ROOT}/${webhook.id}`}
        label={`Edit ${webhook.name}`}
      />
    </>
  ),
})

const storedIn = (webhook: Webhook) => ({
  ...Object.fromEntries(EDITED.map(({ name }) => [name, textOf(webhook[name as keyof Webhook])])),
  'deduplication.action': webhook.deduplication.action,
  'deduplication.by': webhook.deduplication.by,
})

const madePage = (webhook: Made): Page => ({
  title: webhook.name,
  status: 201,
  content: (
    <>
      <PageHeader title={webhook.name} crumbs={[HERE]} />
      <Card title="Address">
        <Copyable text={webhook.url_with_token ?? webhook.url} label="the URL" />
      </Card>
      <Secret label="The secret" text={webhook.secret}>
        {webhook.verification.type === 'secret' && (
          <>
            <p>The sender sends it in the header X-Webhook-Secret. Try it:</p>
            <Code
              text={`curl ${webhook.url} -H 'X-Webhook-Secret: ${webhook.secret}' -d 'name=Ada Lovelace&email=ada@example.com'`}
              label="a request to the webhook"
            />
          </>
        )}
      </Secret>
      <div class="actions">
        <LinkButton href={`${ROOT}/${webhook.id}`} look="primary">
          Go to the webhook
        </LinkButton>
      </div>
    </>
  ),
})

function onePage(view: View, webhook: Webhook, log: List<LogEntry> | undefined): Page {
  const path = `${ROOT}/${webhook.id}`
  return {
    title: webhook.name,
    content: (
      <>
        <PageHeader
          title={<span dir="auto">{webhook.name}</span>}
          crumbs={[HERE]}
          about={webhook.description}
        >
          {mayChangeWebhooks(view) && <Actions of={webhook} />}
        </PageHeader>
        {webhook.poll_problem && <p class="notice amber">Polls of the source: {webhook.poll_problem}</p>}
        {webhook.problem && <p class="notice amber">Problem: {webhook.problem}</p>}
        <Card title="Settings" actions={mayChangeWebhooks(view) && <a href={`${path}/edit`}>Edit</a>}>
          <Facts
            of={[
              ['Status', <Status of={webhook.status} key="status" />],
              ['URL', <Copyable text={webhook.url} label="the URL" key="url" />],
              ['Sender', webhook.sender ?? 'recognised by each request'],
              ['Makes', webhook.target_entity],
              [
                'Also writes',
                (webhook.target_entity !== 'none' && webhook.also_writes.join(', ')) || 'nothing',
              ],
              ['Duplicates', `${webhook.deduplication.action} by ${webhook.deduplication.by}`],
              ['Verified by', webhook.verification.type],
              [
                'IP whitelist',
                webhook.ip_whitelist.length > 0 ? webhook.ip_whitelist.join(', ') : 'all addresses',
              ],
              [
                'Rate limit',
                `${webhook.rate_limit} a minute${webhook.burst > 0 ? `, and ${webhook.burst} at once` : ''}`,
              ],
              ['Starts', webhook.workflow_id && <a href={`/workflows/${webhook.workflow_id}`}>a workflow</a>],
            ]}
          />
        </Card>
        <h2>Log</h2>
        {log ? (
          <IncomingLog href={`${path}/logs`} log={log} />
        ) : (
          <p class="notice amber">Your role does not see the requests of this webhook.</p>
        )}
      </>
    ),
  }
}

function Actions({ of: { id, name, status } }: { of: Webhook }) {
  const path = `${ROOT}/${id}`
  return (
    <>
      {status === 'Active' ? (
        <ConfirmButton
          action={`${path}/status`}
          fields={{ status: 'Inactive' }}
          question="Requests are refused with 403 until it is active again. Their senders may not repeat them."
          confirm="Deactivate"
        >
          Deactivate
        </ConfirmButton>
      ) : (
        <ActionButton action={`${path}/status`} fields={{ status: 'Active' }} look="primary">
          Activate
        </ActionButton>
      )}
      <ConfirmButton
        action={`${path}/rotate-secret`}
        question="Makes a new secret. The old one is refused at once."
        confirm="Rotate the secret"
      >
        Rotate the secret
      </ConfirmButton>
      <ConfirmButton
        action={`${path}/delete`}
        question={`Deletes “${name}” with its log. Its URL stops working. This cannot be undone.`}
        confirm="Delete the webhook"
        look="danger"
      >
        Delete
      </ConfirmButton>
    </>
  )
}
