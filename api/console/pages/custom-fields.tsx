import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Empty } from '../components/empty.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm, textOf } from '../components/schema-form.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Tabs } from '../components/tabs.tsx'
import { errorsOf } from '../forms/errors.ts'
import { labelOf } from '../forms/field-spec.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { storedBefore, toBody } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { mayWrite } from './record-list.tsx'

interface Definition {
  name: string
  type: string
  label: string
  description: string | null
  required: boolean
  unique: boolean
  options: string[] | null
  default: unknown
  sensitive: boolean
  version: number
}

const ROOT = '/settings/custom-fields'
const NAMES = [
  'label',
  'name',
  'type',
  'description',
  'options',
  'default',
  'required',
  'unique',
  'sensitive',
]
const NEW = fieldsOf('createCustomField', NAMES, { name: 'Name in the API' }).map((field) => {
  if (field.type === 'boolean') return { ...field, initial: false }
  if (field.name === 'name')
    return { ...field, help: `${field.help} Lower-case letters, digits and underscores.` }
  return field
})
/** What a definition can be changed in. */
const EDITED = NEW.filter(({ name }) => !['name', 'sensitive'].includes(name))

/** The fields of an organization's own, by kind of record. */
export const customFieldPages: ConsoleRoute[] = [
  { method: 'GET', path: ROOT, handler: (view) => list(view, kindNames[0]!) },
  { method: 'GET', path: `${ROOT}/{entity}`, handler: (view) => list(view, view.params.entity!) },
  {
    method: 'GET',
    path: `${ROOT}/{entity}/new`,
    handler: async ({ params, read }) => {
      // Refuses a kind that there is not.
      await read(`${apiPath(params.entity!)}?limit=1`)
      return formPage(params.entity!, {})
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{entity}`,
    async handler({ params, form, call }) {
      const kind = params.entity!
      const answer = await call('POST', apiPath(kind), toBody(NEW, form, { omitEmpty: true }))
      if (answer.status < 400) return { redirect: `${ROOT}/${kind}?done=created` }
      return formPage(kind, { typed: form, errors: errorsOf(answer, NAMES) }, answer.status)
    },
  },
  {
    method: 'GET',
    path: `${ROOT}/{entity}/fields/{name}`,
    handler: async (view) => onePage(view, await definitionOf(view), {}),
  },
  {
    method: 'POST',
    path: `${ROOT}/{entity}/fields/{name}`,
    async handler(view) {
      const { form, call, params } = view
      const body = toBody(EDITED, form, { stored: storedBefore(form) })
      const headers = { 'if-match': `"${form.get('version')}"` }
      const answer = await call('PATCH', apiPath(params.entity!, params.name), body, headers)
      if (answer.status < 400) return { redirect: `${ROOT}/${params.entity}?done=saved` }
      return onePage(
        view,
        await definitionOf(view),
        { typed: form, errors: errorsOf(answer, NAMES) },
        answer.status,
      )
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{entity}/fields/{name}/delete`,
    async handler({ change, params, form }) {
      const values = form.get('delete_values') === 'true'
      await change('DELETE', `${apiPath(params.entity!, params.name)}${values ? '?delete_values=true' : ''}`)
      return { redirect: `${ROOT}/${params.entity}?done=removed` }
    },
  },
]

const apiPath = (kind: string, name?: string) =>
  ['/app/v1/custom-fields', kind, ...(name === undefined ? [] : [name])]
    .map((part, i) => (i === 0 ? part : encodeURIComponent(part)))
    .join('/')

const definitionOf = ({ read, params }: View) => read<Definition>(apiPath(params.entity!, params.name))

const list = async (view: View, kind: string) =>
  listPage(view, kind, await view.read<List<Definition>>(pageOf(view, apiPath(kind))))

const TABS = kindNames.map((kind) => ({ href: `${ROOT}/${kind}`, label: labelOf(kind) }))

function listPage(view: View, kind: string, fields: List<Definition>): Page {
  const add = mayWrite(view, kind) && (
    <LinkButton href={`${ROOT}/${kind}/new`} look="primary" icon="plus">
      New field
    </LinkButton>
  )
  return {
    title: `Custom fields of ${kind}`,
    content: (
      <>
        <PageHeader
          title="Custom fields"
          about="Fields of your own for each kind of record: forms, lists, filters, imports and workflows have them like the others."
        >
          {fields.data.length > 0 && add}
        </PageHeader>
        <Tabs label="Kinds of records" tabs={TABS} current={`${ROOT}/${kind}`} />
        {fields.data.length === 0 ? (
          <Empty icon="list" title={`No custom field of ${kind} yet`}>
            <p>
              A definition gives a field its type, its choices, and whether it is required. Without one,
              records take any text, number or list under any name, unless the organization refuses that.
            </p>
            {add}
          </Empty>
        ) : (
          <>
            <Table
              label={`Custom fields of ${kind}`}
              rows={fields.data}
              keyOf={({ name }) => name}
              columns={[
                {
                  title: 'Label',
                  cell: ({ name, label }) => (
                    <a href={`${ROOT}/${kind}/fields/${encodeURIComponent(name)}`} dir="auto" title={label}>
                      {label}
                    </a>
                  ),
                },
                { title: 'Name', cell: ({ name }) => <code title={name}>{name}</code> },
                { title: 'Type', cell: ({ type }) => type.replaceAll('_', ' ') },
                {
                  title: 'Choices',
                  cell: ({ options }) => (
                    <span dir="auto" title={(options ?? []).join(', ').slice(0, 400)}>
                      {(options ?? []).join(', ').slice(0, 80)}
                    </span>
                  ),
                },
                { title: 'Rules', cell: (field) => rulesOf(field).join(', ') },
              ]}
            />
            <Paging list={fields} />
          </>
        )}
      </>
    ),
  }
}

const rulesOf = (field: Definition) =>
  (['required', 'unique', 'sensitive'] as const).filter((rule) => field[rule])

const crumbs = (kind: string) => [{ href: `${ROOT}/${kind}`, label: `Custom fields of ${kind}` }]

const formPage = (kind: string, state: FormState, status = 200): Page => ({
  title: `New field of ${kind}`,
  status,
  content: (
    <>
      <PageHeader title="New field" crumbs={crumbs(kind)} />
      <SchemaForm
        action={`${ROOT}/${kind}`}
        fields={NEW}
        state={state}
        button="Make the field"
        cancel={`${ROOT}/${kind}`}
        label={`New field of ${kind}`}
      />
    </>
  ),
})

function onePage(view: View, definition: Definition, state: FormState, status = 200): Page {
  const kind = view.params.entity!
  const path = `${ROOT}/${kind}/fields/${encodeURIComponent(definition.name)}`
  return {
    title: definition.label,
    status,
    content: (
      <>
        <PageHeader
          title={<span dir="auto">{definition.label}</span>}
          crumbs={crumbs(kind)}
          about={
            <>
              <code>custom_fields.{definition.name}</code> in the API, filters and workflows. Stored values
              are never lost: a change that contradicts one is refused.
              {definition.sensitive && ' The field is sensitive: its values are masked.'}
            </>
          }
        />
        <SchemaForm
          action={path}
          fields={EDITED}
          state={{ stored: storedIn(definition), ...state }}
          button="Save"
          cancel={`${ROOT}/${kind}`}
          label={definition.label}
        >
          <input
            type="hidden"
            name="version"
            value={state.typed?.get('version') || String(definition.version)}
          />
        </SchemaForm>
        {mayWrite(view, kind) && (
          <Card title="Delete the field">
            <p>Records can keep their values, then without a definition, or lose them too.</p>
            <div class="actions">
              <ConfirmButton
                action={`${path}/delete`}
                question="Deletes the definition. The records keep their values."
                confirm="Delete the definition"
                look="danger"
              >
                Delete the definition
              </ConfirmButton>
              <ConfirmButton
                action={`${path}/delete`}
                fields={{ delete_values: 'true' }}
                question={`Deletes the definition, and the values in all ${kind}. The history of each record keeps its value.`}
                confirm="Delete it with all values"
                look="danger"
              >
                Delete it with all values
              </ConfirmButton>
            </div>
          </Card>
        )}
      </>
    ),
  }
}

/** The default of several choices is one text, as imports write it. */
const storedIn = (definition: Definition) =>
  Object.fromEntries(
    EDITED.map(({ name }) => {
      const value = definition[name as keyof Definition]
      return [name, name === 'default' && Array.isArray(value) ? value.join(';') : textOf(value)]
    }),
  )
