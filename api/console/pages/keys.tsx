import type { ComponentChildren } from 'preact'
import { ConfirmButton, LinkButton } from '../components/button.tsx'
import { Code } from '../components/code.tsx'
import { Empty } from '../components/empty.tsx'
import { ErrorSummary, Field, Marked } from '../components/field.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { textOf } from '../components/schema-form.tsx'
import { ScopeMatrix } from '../components/scope-matrix.tsx'
import { Secret } from '../components/secret.tsx'
import { Status } from '../components/status.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { errorsOf, type FormErrors, NO_ERRORS } from '../forms/errors.ts'
import { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { labels } from './sign-in.tsx'

interface Key {
  id: string
  name: string
  prefix: string
  scopes: string[]
  expires_at: string | null
  revoked_at: string | null
  last_used_at: string | null
  created_at: string
}

const FIELDS = fieldsOf('createKey', ['name', 'scopes', 'expires_at', 'ip_allowlist'], {
  expires_at: 'Expires (UTC; empty: never)',
})
const HERE = { href: '/settings/keys', label: 'API keys' }

export const keyPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/settings/keys',
    handler: async (view) => listPage(await view.read<List<Key>>(pageOf(view, '/app/keys'))),
  },
  { method: 'GET', path: '/settings/keys/new', handler: async (view) => formPage(await knownKeys(view), {}) },
  {
    method: 'POST',
    path: '/settings/keys',
    async handler(view) {
      const { form } = view
      const body = toBody(FIELDS, form, { omitEmpty: true })
      if (typeof body.expires_at === 'string') body.expires_at = inUtc(body.expires_at)
      const answer = await view.call('POST', '/app/keys', { scopes: form.all('scopes'), ...body })
      if (answer.status === 403) return formPage(undefined, { errors: errorsOf(answer, []) }, 403)
      if (answer.status >= 400) {
        const errors = errorsOf(
          answer,
          FIELDS.map(({ name }) => name),
        )
        return formPage(undefined, { typed: form, errors }, answer.status)
      }
      return madePage(view, answer.body as unknown as Key & { key: string }, 'The key')
    },
  },
  {
    method: 'POST',
    path: '/settings/keys/{key_id}/revoke',
    async handler({ change, params }) {
      await change('DELETE', `/app/keys/${params.key_id}`)
      return { redirect: '/settings/keys?done=revoked' }
    },
  },
  {
    method: 'POST',
    path: '/settings/keys/{key_id}/rotate',
    async handler(view) {
      const { change, params } = view
      const key = await change<Key & { key: string }>('POST', `/app/keys/${params.key_id}/rotate`, {})
      return madePage(view, key, 'The new secret')
    },
  },
]

/** Refuses those who may not see the keys, before they fill in the form. */
const knownKeys = ({ read }: View) => read<List<Key>>('/app/keys?limit=1')

/** `datetime-local` has no zone. */
const inUtc = (local: string) =>
  /Z$|[+-]\d\d:\d\d$/.test(local) ? local : `${local}${local.length === 16 ? ':00' : ''}Z`

const stateOf = ({ revoked_at, expires_at }: Key) => {
  if (revoked_at) return 'revoked'
  return expires_at && Date.parse(expires_at) < Date.now() ? 'expired' : 'active'
}

function listPage(keys: List<Key>): Page {
  return {
    title: 'API keys',
    content: (
      <>
        <PageHeader
          title="API keys"
          about="Programs send a key with each request to /v1. A key can do what its scopes allow, and nothing else."
        >
          <LinkButton href="/settings/keys/new" look="primary" icon="plus">
            New key
          </LinkButton>
        </PageHeader>
        {keys.data.length === 0 ? (
          <Empty icon="key-round" title="No key yet">
            <p>A key lets a program read and write what you choose.</p>
            <LinkButton href="/settings/keys/new" look="primary">
              Make a key
            </LinkButton>
          </Empty>
        ) : (
          <>
            <Table
              label="API keys"
              rows={keys.data}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: 'Name',
                  cell: ({ name }) => (
                    <strong dir="auto" title={name}>
                      {name}
                    </strong>
                  ),
                },
                { title: 'Key', cell: ({ prefix }) => <code>{prefix}…</code> },
                {
                  title: 'Scopes',
                  cell: ({ scopes }) => <span title={scopes.join(', ')}>{scopes.join(', ')}</span>,
                },
                { title: 'Status', cell: (key) => <Status of={stateOf(key)} /> },
                { title: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
                { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
                { title: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
                {
                  title: '',
                  align: 'right',
                  cell: (key) => (stateOf(key) === 'active' ? <KeyActions of={key} /> : null),
                },
              ]}
            />
            <Paging list={keys} />
          </>
        )}
      </>
    ),
  }
}

const KeyActions = ({ of: { id, name } }: { of: Key }) => (
  <div class="row-actions">
    <ConfirmButton
      action={`/settings/keys/${id}/rotate`}
      question={`A new secret for “${name}”. The old one stops working at once.`}
      confirm="Rotate the key"
    >
      Rotate
    </ConfirmButton>
    <ConfirmButton
      action={`/settings/keys/${id}/revoke`}
      question={`Every program that uses “${name}” is refused at once. This cannot be undone.`}
      confirm="Revoke the key"
      look="danger"
    >
      Revoke
    </ConfirmButton>
  </div>
)

function formPage(_: unknown, state: { typed?: Form; errors?: FormErrors }, status = 200): Page {
  const { typed = new Form(), errors = NO_ERRORS } = state
  const [name, scopes, ...others] = FIELDS
  return {
    title: 'New API key',
    status,
    content: (
      <>
        <PageHeader title="New API key" crumbs={[HERE]} />
        <PostForm action="/settings/keys" class="form" label="New API key">
          <ErrorSummary errors={errors} labels={labels(FIELDS)} />
          <Field spec={name!} value={{ text: typed.get('name') }} errors={errors.byField.get('name')} />
          <fieldset id="f-scopes">
            <legend>
              Scopes <span class="required">required</span>
            </legend>
            <p class="help">
              Each level includes read. <Marked text={scopes!.help} />
            </p>
            {errors.byField.get('scopes') && <Problem>{errors.byField.get('scopes')!.join('. ')}</Problem>}
            <ScopeMatrix name="scopes" chosen={typed.all('scopes')} />
          </fieldset>
          {others.map((spec) => (
            <Field
              key={spec.name}
              spec={spec}
              value={{ text: typed.has(spec.name) ? typed.get(spec.name) : textOf(spec.initial) }}
              errors={errors.byField.get(spec.name)}
            />
          ))}
          <div class="form-actions">
            <button type="submit" class="button primary">
              Make the key
            </button>
            <LinkButton href={HERE.href}>Cancel</LinkButton>
          </div>
        </PostForm>
      </>
    ),
  }
}

const Problem = ({ children }: { children: ComponentChildren }) => (
  <div class="field">
    <p class="error">{children}</p>
  </div>
)

/** The answer of the POST, not a page of its own: the secret must be in no address. */
function madePage({ baseUrl }: View, key: Key & { key: string }, label: string): Page {
  const curl = `curl ${baseUrl}/v1/me -H "Authorization: Bearer ${key.key}"`
  return {
    title: key.name,
    status: 201,
    content: (
      <>
        <PageHeader title={key.name} crumbs={[HERE]} />
        <Secret label={label} text={key.key}>
          <p>Try it:</p>
          <Code text={curl} label="a request with the key" />
        </Secret>
        <div class="chips">
          {key.scopes.map((scope) => (
            <span class="chip" key={scope}>
              {scope}
            </span>
          ))}
        </div>
        <div class="actions">
          <LinkButton href={HERE.href}>Done</LinkButton>
        </div>
      </>
    ),
  }
}
