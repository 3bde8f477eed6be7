import { ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Empty } from '../components/empty.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { Table } from '../components/table.tsx'
import { mayCall } from '../forms/allowed.ts'
import { errorsOf, type FormErrors } from '../forms/errors.ts'
import type { FieldSpec } from '../forms/field-spec.ts'
import { Form } from '../forms/form.ts'
import type { ConsoleRoute, Page, View } from '../route.ts'

type Value = string | number | boolean

const HERE = '/settings/variables'
const TYPES = ['text', 'number', 'boolean'] as const

const field = (name: string, label: string, rest: Partial<FieldSpec> = {}): FieldSpec => ({
  name,
  label,
  help: '',
  type: 'text',
  choices: [],
  required: true,
  max: undefined,
  references: undefined,
  nullable: false,
  initial: null,
  ...rest,
})
/** A member of `env`: its type is that of its JSON value. */
const FIELDS = [
  field('name', 'Name', { help: 'Workflows read it as `{{ env.<name> }}`.' }),
  field('type', 'Type', { type: 'choice', choices: TYPES }),
  field('value', 'Value', { required: false, help: 'A boolean is `true` or `false`. Not for secrets.' }),
]

/** The variables of workflows: members of `env` of the organization. */
export const variablePages: ConsoleRoute[] = [
  { method: 'GET', path: HERE, handler: (view) => page(view, {}) },
  {
    method: 'POST',
    path: HERE,
    async handler(view) {
      const { form, call } = view
      const name = form.get('name').trim()
      const answer = await call('PATCH', '/app/organization', { env: { [name]: typedValue(form) } })
      if (answer.status < 400) return { redirect: `${HERE}?done=saved` }
      return page(view, { typed: form, errors: atFields(errorsOf(answer, ['env'])) }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${HERE}/delete`,
    async handler({ change, form }) {
      await change('PATCH', '/app/organization', { env: { [form.get('name')]: null } })
      return { redirect: `${HERE}?done=removed` }
    },
  },
]

/** What does not fit its type is sent as it was typed. */
function typedValue(form: Form): Value {
  const text = form.get('value')
  const isNumber = form.get('type') === 'number' && text.trim() !== '' && Number.isFinite(Number(text))
  if (isNumber) return Number(text)
  if (form.get('type') === 'boolean' && ['true', 'false'].includes(text.trim())) return text.trim() === 'true'
  return text
}

/** An error of a member of `env` is one of its name, or of its value: both are shown at the name. */
const atFields = ({ byField, others }: FormErrors): FormErrors => ({
  byField: new Map([...byField].map(([, texts]) => ['name', texts])),
  others,
})

const typeOf = (value: Value) => (typeof value === 'string' ? 'text' : typeof value)

async function page(view: View, state: FormState, status = 200): Promise<Page> {
  const { env } = await view.read<{ env: Record<string, Value> }>('/app/organization')
  const may = mayCall(view.session!.role, 'updateOrganization')
  const edited = view.query.get('edit')
  const known = edited !== null && Object.hasOwn(env, edited) ? env[edited] : undefined
  const shown: FormState =
    known === undefined
      ? { typed: new Form([['type', 'text']]) }
      : {
          typed: new Form([
            ['name', edited!],
            ['type', typeOf(known)],
            ['value', String(known)],
          ]),
        }
  const names = Object.keys(env).sort()
  return {
    title: 'Variables',
    status,
    content: (
      <>
        <PageHeader
          title="Variables"
          about="Values that every workflow reads, such as the address of a service. All members see them: for tokens and passwords there are secrets."
        />
        {names.length === 0 ? (
          <Empty icon="braces" title="No variable yet">
            <p>
              What differs from one organization to the next, or changes, stays out of the workflows: they
              read it as <code>{'{{ env.<name> }}'}</code>.
            </p>
          </Empty>
        ) : (
          <Table
            label="Variables"
            rows={names}
            keyOf={(name) => name}
            columns={[
              { title: 'Name', cell: (name) => <code>{name}</code> },
              {
                title: 'Value',
                cell: (name) => (
                  <span dir="auto" title={String(env[name]).slice(0, 400)}>
                    {String(env[name]).slice(0, 120)}
                  </span>
                ),
              },
              { title: 'Type', cell: (name) => typeOf(env[name]!) },
              { title: 'In workflows', cell: (name) => <code>{`{{ env.${name} }}`}</code> },
              { title: '', align: 'right', cell: (name) => may && <Actions of={name} /> },
            ]}
          />
        )}
        {may && (
          <Card title={known === undefined ? 'Add a variable' : 'Change a variable'}>
            <SchemaForm
              action={HERE}
              fields={FIELDS}
              state={state.typed ? state : shown}
              button="Save the variable"
              {...(known !== undefined && { cancel: HERE })}
              label="Variable"
            />
          </Card>
        )}
      </>
    ),
  }
}

const Actions = ({ of: name }: { of: string }) => (
  <div class="row-actions">
    <LinkButton href={`${HERE}?edit=${encodeURIComponent(name)}`}>Edit</LinkButton>
    <ConfirmButton
      action={`${HERE}/delete`}
      fields={{ name }}
      question={`Workflows that read “${name}” get nothing there from their next segment on.`}
      confirm="Delete the variable"
      look="danger"
    >
      Delete
    </ConfirmButton>
  </div>
)
