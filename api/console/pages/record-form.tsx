import type { KindName } from '../../../db/model/records/kind.ts'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { errorsOf, type FormErrors } from '../forms/errors.ts'
import { type FieldSpec, labelOf } from '../forms/field-spec.ts'
import type { Form } from '../forms/form.ts'
import { asSent, storedBefore, toBody } from '../forms/to-body.ts'
import {
  kindOfObject,
  type Named,
  namesOf,
  type RecordRow,
  type RecordSchema,
  schemaOf,
  titleOf,
  usersOf,
} from '../records/record.ts'
import { recordFields, textsOf } from '../records/record-fields.ts'
import { resolveReferences } from '../records/references.ts'
import type { ConsoleRoute, Page, View } from '../route.ts'

/** The forms that create and change a record. */
export const recordFormPages: ConsoleRoute[] = kindNames.flatMap((kind): ConsoleRoute[] => [
  {
    method: 'GET',
    path: `/records/${kind}/new`,
    handler: async (view) => newPage(view, await preparedFor(view, kind), {}, view.query.get('for') ?? ''),
  },
  {
    method: 'POST',
    path: `/records/${kind}`,
    async handler(view) {
      const { form } = view
      const prepared = await preparedFor(view, kind)
      const { fields } = prepared
      const target = form.get('for')
      const body = toBody(fields, form, { omitEmpty: true })
      const problems = await resolveReferences(view, fields, body)
      const refused = (errors: FormErrors, status: number) =>
        newPage(view, prepared, { typed: form, errors }, target, status)
      if (problems.size > 0) return refused({ byField: problems, others: [] }, 422)
      const answer = await view.call('POST', `/app/v1/objects/${kind}`, { ...body, ...linkTo(target) })
      if (answer.status >= 400) return refused(errorsOf(answer, namesIn(fields)), answer.status)
      const back = pageOfTarget(target) ?? `/records/${kind}/${answer.body.id}`
      return { redirect: `${back}?done=created` }
    },
  },
  {
    method: 'GET',
    path: `/records/${kind}/{entity_id}/edit`,
    async handler(view) {
      const [prepared, record] = await Promise.all([preparedFor(view, kind), recordOf(view, kind)])
      const stored = await storedTexts(view, prepared, record)
      return editPage(prepared, record, { stored })
    },
  },
  {
    method: 'POST',
    path: `/records/${kind}/{entity_id}`,
    handler: (view) => save(view, kind),
  },
])

interface Prepared {
  schema: RecordSchema
  fields: FieldSpec[]
  options: Record<string, Named[]>
}

async function preparedFor(view: View, kind: KindName): Promise<Prepared> {
  const [schema, users] = await Promise.all([schemaOf(view, kind), usersOf(view)])
  const fields = recordFields(schema)
  const options = Object.fromEntries(
    fields.filter(({ references }) => references === 'users').map(({ name }) => [name, users]),
  )
  return { schema, fields, options }
}

const namesIn = (fields: readonly FieldSpec[]) => fields.map(({ name }) => name)

const recordOf = ({ read, params }: View, kind: KindName) =>
  read<RecordRow>(`/app/v1/objects/${kind}/${params.entity_id}`)

async function storedTexts(view: View, { fields }: Prepared, record: RecordRow) {
  const references = fields.flatMap(({ name, type, references }): [string, unknown][] =>
    type === 'reference' && references ? [[references, record[name]]] : [],
  )
  return textsOf(fields, record, { names: await namesOf(view, references), timezone: view.timezone })
}

/**
 * Saves what was typed. What somebody else changed meanwhile is kept; if both changed the same field, nothing is saved
 * until the author has seen the other value.
 */
async function save(view: View, kind: KindName) {
  const { form, params } = view
  const [prepared, record] = await Promise.all([preparedFor(view, kind), recordOf(view, kind)])
  const { fields } = prepared
  const now = await storedTexts(view, prepared, record)
  const before = storedBefore(form)
  const refused = (errors: FormErrors, status: number) =>
    editPage(prepared, record, { typed: form, stored: now, errors }, status)
  const conflicts = conflictsIn(fields, form, { before, now })
  if (conflicts.size > 0) return refused({ byField: conflicts, others: [] }, 409)
  const body = withWholeAddress(toBody(fields, form, { stored: before }), record)
  const problems = await resolveReferences(view, fields, body)
  if (problems.size > 0)
    return editPage(
      prepared,
      record,
      { typed: form, stored: before, errors: { byField: problems, others: [] } },
      422,
    )
  const headers = { 'if-match': `"${record.version}"` }
  const answer = await view.call('PATCH', `/app/v1/objects/${kind}/${params.entity_id}`, body, headers)
  if (answer.status < 400) return { redirect: `/records/${kind}/${params.entity_id}?done=saved` }
  const errors = errorsOf(answer, namesIn(fields))
  return editPage(prepared, record, { typed: form, stored: before, errors }, answer.status)
}

/** The fields that were typed, and also changed by somebody else since the form was opened. */
function conflictsIn(
  fields: readonly FieldSpec[],
  form: Form,
  { before, now }: { before: Record<string, string>; now: Record<string, string> },
): Map<string, string[]> {
  const all = fields.flatMap(({ name, type }): [string, string[]][] => {
    const texts = [form.all(name).join('\n'), before[name] ?? '', now[name] ?? '']
    const [typed, was, is] = texts.map((text) => asSent(text, type))
    if (!form.has(name) || typed === was || is === was || is === typed) return []
    return [[name, [`was changed meanwhile to “${is}”: save again to replace it by what you typed`]]]
  })
  return new Map(all)
}

/** An address is replaced as a whole: what its author did not change is sent with it. */
function withWholeAddress(body: Record<string, unknown>, record: RecordRow): Record<string, unknown> {
  if (body.address === undefined) return body
  const address = { ...(record.address as object | null), ...(body.address as object) }
  return { ...body, address: Object.values(address).some((part) => part !== null) ? address : null }
}

/** `contact:<id>`: the record that a new one belongs to. */
function linkTo(target: string) {
  const [object, id] = target.split(':')
  return object && id ? { associations: [{ object, id }] } : {}
}

function pageOfTarget(target: string): string | undefined {
  const [object = '', id = ''] = target.split(':')
  const kind = kindOfObject(object)
  return kind && id ? `/records/${kind}/${encodeURIComponent(id)}` : undefined
}

function newPage(
  _view: View,
  { schema, fields, options }: Prepared,
  state: FormState,
  target: string,
  status = 200,
): Page {
  const { entity, singular } = schema
  const list = `/records/${entity}`
  return {
    title: `New ${singular}`,
    status,
    content: (
      <>
        <PageHeader title={`New ${singular}`} crumbs={[{ href: list, label: labelOf(entity) }]} />
        <SchemaForm
          action={list}
          fields={fields}
          state={state}
          options={options}
          button={`Create the ${singular}`}
          cancel={pageOfTarget(target) ?? list}
          label={`New ${singular}`}
        >
          {target && <input type="hidden" name="for" value={target} />}
        </SchemaForm>
      </>
    ),
  }
}

function editPage(
  { schema, fields, options }: Prepared,
  record: RecordRow,
  state: FormState,
  status = 200,
): Page {
  const here = `/records/${schema.entity}/${record.id}`
  const title = titleOf(record)
  return {
    title: `Edit ${title}`,
    status,
    content: (
      <>
        <PageHeader
          title={`Edit the ${schema.singular}`}
          crumbs={[
            { href: `/records/${schema.entity}`, label: labelOf(schema.entity) },
            { href: here, label: title },
          ]}
        />
        <SchemaForm
          action={here}
          fields={fields}
          state={state}
          options={options}
          button="Save"
          cancel={here}
          label={`Edit ${title}`}
        />
      </>
    ),
  }
}
