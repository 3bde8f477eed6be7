import { ConfirmButton, LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { errorsOf, type FormErrors } from '../forms/errors.ts'
import type { FieldSpec } from '../forms/field-spec.ts'
import { Form, SECRET_FIELD } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page } from '../route.ts'

interface Secret {
  name: string
  created_at: string
  updated_at: string
}

const ROOT = '/settings/secrets'
const HERE = { href: ROOT, label: 'Secrets' }

const [VALUE] = fieldsOf('putSecret', ['value'])
/** The name is in the address of the operation, the value in its body. */
const NAME: FieldSpec = {
  ...VALUE!,
  name: 'name',
  label: 'Name',
  help: 'Workflows read it as `{{ secrets.<name> }}`.',
  type: 'text',
}
const FIELDS: FieldSpec[] = [
  NAME,
  {
    ...VALUE!,
    name: SECRET_FIELD,
    type: 'secret',
    help: 'It is stored encrypted, and never shown again. A name that exists gets this value instead.',
  },
]

/** The secrets of workflows: their names, and the ways to store, replace and delete one. */
export const secretPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: ROOT,
    handler: async (view) => listPage(await view.read<List<Secret>>(pageOf(view, '/app/secrets'))),
  },
  {
    method: 'GET',
    path: `${ROOT}/new`,
    formOf: 'putSecret',
    handler: async ({ query }) => formPage({ typed: new Form([['name', query.get('name') ?? '']]) }),
  },
  {
    method: 'POST',
    path: ROOT,
    async handler({ form, call }) {
      const name = form.get('name').trim()
      // The address of a secret without a name would be that of the list.
      const path = `/app/secrets/${encodeURIComponent(name || ' ')}`
      const answer = await call('PUT', path, { value: form.get(SECRET_FIELD) })
      if (answer.status < 400) return { redirect: `${ROOT}?done=saved` }
      const typed = new Form([['name', name]])
      return formPage({ typed, errors: atFields(errorsOf(answer, ['name', 'value'])) }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{name}/delete`,
    async handler({ change, params }) {
      await change('DELETE', `/app/secrets/${encodeURIComponent(params.name!)}`)
      return { redirect: `${ROOT}?done=removed` }
    },
  },
]

/** The errors of `value` belong to the field of the secret. */
function atFields({ byField, others }: FormErrors): FormErrors {
  return {
    byField: new Map([...byField].map(([name, texts]) => [name === 'value' ? SECRET_FIELD : name, texts])),
    others,
  }
}

function listPage(secrets: List<Secret>): Page {
  const add = (
    <LinkButton href={`${ROOT}/new`} look="primary" icon="plus">
      New secret
    </LinkButton>
  )
  return {
    title: 'Secrets',
    content: (
      <>
        <PageHeader
          title="Secrets"
          about="Tokens and passwords that nodes send to other services. Workflows name them; their values are masked in results, and nobody can read them again."
        >
          {secrets.data.length > 0 && add}
        </PageHeader>
        {secrets.data.length === 0 ? (
          <Empty icon="lock" title="No secret yet">
            <p>
              A node that calls another service reads its token as <code>{'{{ secrets.<name> }}'}</code>, so
              that it is in no workflow.
            </p>
            {add}
          </Empty>
        ) : (
          <>
            <Table
              label="Secrets"
              rows={secrets.data}
              keyOf={({ name }) => name}
              columns={[
                { title: 'Name', cell: ({ name }) => <code>{name}</code> },
                { title: 'In workflows', cell: ({ name }) => <code>{`{{ secrets.${name} }}`}</code> },
                { title: 'Value stored', cell: ({ updated_at }) => <Time at={updated_at} /> },
                { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
                { title: '', align: 'right', cell: (one) => <Actions of={one} /> },
              ]}
            />
            <Paging list={secrets} />
          </>
        )}
      </>
    ),
  }
}

const Actions = ({ of: { name } }: { of: Secret }) => (
  <div class="row-actions">
    <LinkButton href={`${ROOT}/new?name=${encodeURIComponent(name)}`}>Replace</LinkButton>
    <ConfirmButton
      action={`${ROOT}/${encodeURIComponent(name)}/delete`}
      question={`Nodes that read “${name}” fail from their next attempt on. This cannot be undone.`}
      confirm="Delete the secret"
      look="danger"
    >
      Delete
    </ConfirmButton>
  </div>
)

const formPage = (state: FormState, status = 200): Page => ({
  title: 'Store a secret',
  status,
  content: (
    <>
      <PageHeader title="Store a secret" crumbs={[HERE]} />
      <SchemaForm
        action={ROOT}
        fields={FIELDS}
        state={state}
        button="Store the secret"
        cancel={ROOT}
        label="Store a secret"
      />
    </>
  ),
})
