import { type MergeableKind, mergeableKinds } from '../../../workflows/shared/record-kinds.ts'
import { LinkButton } from '../components/button.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Refusal } from '../components/refusal.tsx'
import { type Column, Table } from '../components/table.tsx'
import { labelOf } from '../forms/field-spec.ts'
import { namesOf, type RecordRow, type RecordSchema, schemaOf, titleOf } from '../records/record.ts'
import { type Shape, Value } from '../records/value.tsx'
import type { ConsoleRoute, Page, View } from '../route.ts'

/** Two records side by side, and the merge of one into the other. */
export const mergePages: ConsoleRoute[] = mergeableKinds.flatMap((kind): ConsoleRoute[] => {
  const path = `/records/${kind}/merge`
  return [
    { method: 'GET', path, formOf: `merge${operationOf(kind)}`, handler: (view) => page(view, kind) },
    {
      method: 'POST',
      path,
      async handler(view) {
        const { form, call } = view
        const [record, from] = [form.get('record'), form.get('from')]
        const headers = { 'if-match': `"${form.get('version')}"` }
        const answer = await call(
          'POST',
          `/app/v1/objects/${kind}/${encodeURIComponent(record)}/merge`,
          { from },
          headers,
        )
        if (answer.status < 400) return { redirect: `/records/${kind}/${record}?done=merged` }
        view.query = new URLSearchParams({ record, from })
        return page(view, kind, answer)
      },
    },
  ]
})

/** `contacts` as `Contact`, `line_items` as `LineItem`. */
function operationOf(kind: MergeableKind): string {
  const singular = kind.endsWith('ies') ? `${kind.slice(0, -3)}y` : kind.slice(0, -1)
  return singular.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())
}

interface Row {
  label: string
  shape: Shape
  values: [kept: unknown, duplicate: unknown]
}

async function page(
  view: View,
  kind: MergeableKind,
  refusal?: Awaited<ReturnType<View['call']>>,
): Promise<Page> {
  const { read, query } = view
  const ids = [query.get('record') ?? '', query.get('from') ?? '']
  const [schema, kept, duplicate] = await Promise.all([
    schemaOf(view, kind),
    ...ids.map((id) => read<RecordRow>(`/app/v1/objects/${kind}/${encodeURIComponent(id || '-')}`)),
  ])
  const records = [kept!, duplicate!]
  const references = schema.fields.flatMap(({ name, references }): [string, unknown][] =>
    references ? records.map((record): [string, unknown] => [references, record[name]]) : [],
  )
  const names = await namesOf(view, references)
  const rows = rowsOf(schema, kept!, duplicate!)
  const other = new URLSearchParams({ record: duplicate!.id, from: kept!.id })
  const column = (title: string, i: 0 | 1): Column<Row> => ({
    title,
    cell: ({ shape, values }) => <Value value={values[i]} shape={shape} names={names} record={records[i]!} />,
  })
  return {
    title: 'Merge',
    status: refusal?.status ?? 200,
    content: (
      <>
        <PageHeader
          title="Merge two records"
          crumbs={[{ href: `/records/${kind}`, label: labelOf(kind) }]}
          about="The record on the left stays with its id. Its empty fields are filled from the duplicate; tags and custom fields are united; links, notes, tasks and the history move to it."
        >
          <LinkButton href={`/records/${kind}/merge?${other}`} icon="arrow-left-right">
            Keep the other one
          </LinkButton>
        </PageHeader>
        {refusal && <Refusal of={refusal} />}
        <Table
          label="The two records"
          rows={rows}
          keyOf={({ label }) => label}
          columns={[
            { title: 'Field', cell: ({ label }) => <span class="muted">{label}</span> },
            column('Stays', 0),
            column('Duplicate', 1),
            {
              title: 'Different',
              cell: ({ shape, values }) =>
                isDifferent(shape, values) ? <span class="status amber">different</span> : '',
            },
          ]}
        />
        <PostForm action={`/records/${kind}/merge`} label="Merge">
          <input type="hidden" name="record" value={kept!.id} />
          <input type="hidden" name="from" value={duplicate!.id} />
          <input type="hidden" name="version" value={kept!.version} />
          <p class="notice amber">
            “<span dir="auto">{titleOf(duplicate!).slice(0, 200)}</span>” is deleted and cannot be restored.
            Where both have a value, that of the record on the left counts.
          </p>
          <div class="form-actions">
            <button type="submit" class="button primary">
              Merge them
            </button>
            <LinkButton href={`/records/${kind}/${kept!.id}`}>Cancel</LinkButton>
          </div>
        </PostForm>
      </>
    ),
  }
}

/** They differ always, and say nothing about the person or thing. */
const NOT_COMPARED = ['id', 'version', 'custom_fields', 'updated_at', 'updated_by', 'created_by']

/** The fields that one of the two has. */
function rowsOf({ fields, custom_fields }: RecordSchema, kept: RecordRow, duplicate: RecordRow): Row[] {
  const own = fields
    .filter(({ name }) => !NOT_COMPARED.includes(name))
    .map(
      (shape): Row => ({
        label: labelOf(shape.name),
        shape,
        values: [kept[shape.name], duplicate[shape.name]],
      }),
    )
  const named = new Map(custom_fields.map((field) => [field.name, field]))
  const customNames = new Set([kept, duplicate].flatMap((record) => Object.keys(record.custom_fields)))
  const custom = [...customNames].sort().map(
    (name): Row => ({
      label: named.get(name)?.label ?? name,
      shape: { type: named.get(name)?.type ?? 'text' },
      values: [kept.custom_fields[name], duplicate.custom_fields[name]],
    }),
  )
  return [...own, ...custom].filter(({ values }) => values.some((value) => !isEmpty(value)))
}

const isEmpty = (value: unknown) =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)

/** Times, such as that of the creation, differ without meaning anything. */
const isDifferent = ({ type }: Shape, [kept, duplicate]: Row['values']) =>
  type !== 'datetime' &&
  !isEmpty(kept) &&
  !isEmpty(duplicate) &&
  JSON.stringify(kept) !== JSON.stringify(duplicate)
