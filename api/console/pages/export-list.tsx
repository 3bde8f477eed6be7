import { ActionButton, LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { SchemaForm } from '../components/schema-form.tsx'
import { Status } from '../components/status.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { errorsOf, type FormErrors } from '../forms/errors.ts'
import { type FieldSpec, labelOf } from '../forms/field-spec.ts'
import type { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page } from '../route.ts'

interface Export {
  id: string
  entity: string
  query: Record<string, unknown>
  format: string
  status: string
  rows: number
  bytes: number
  error: { message: string } | null
  created_at: string
  expires_at: string | null
}

const HERE = { href: '/exports', label: 'Exports' }
const NAMES = ['entity', 'format', 'query', 'names', 'bom']

/** A new export needs its kind: the schema does not require it, because a view can say it. */
const exportFields = (): FieldSpec[] =>
  fieldsOf('createExport', NAMES, {
    entity: 'Kind of records',
    query: 'Filters and sort',
    names: 'Names beside ids',
    bom: 'For Excel',
  }).map((field) => {
    if (field.name === 'entity') return { ...field, required: true, initial: 'contacts' }
    return field.name === 'names' ? { ...field, initial: false } : field
  })

/** The exports with their files, and a new one; lists of records lead here with their filters. */
export const exportPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/exports',
    handler: async (view) => listPage(await view.read<List<Export>>(pageOf(view, '/app/v1/exports'))),
  },
  {
    method: 'GET',
    path: '/exports/new',
    handler: async () => newPage({}),
  },
  {
    method: 'POST',
    path: '/exports',
    async handler(view) {
      const { form, call } = view
      const answer = await call('POST', '/app/v1/exports', bodyOf(form))
      if (answer.status < 400) return { redirect: '/exports?done=exporting' }
      return newPage({ typed: form, errors: errorsOf(answer, NAMES), status: answer.status })
    },
  },
]

/** The filters come as JSON from a list of records, and as lines from the form. */
function bodyOf(form: Form): Record<string, unknown> {
  const body = toBody(exportFields(), form, { omitEmpty: true })
  const parsed = jsonObject(form.get('query'))
  return parsed ? { ...body, query: parsed } : body
}

function jsonObject(text: string): object | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A button that exports what a list of records shows. */
export function ExportButton({ entity, query }: { entity: string; query: Record<string, unknown> }) {
  return (
    <ActionButton action="/exports" fields={{ entity, query: JSON.stringify(query) }}>
      Export
    </ActionButton>
  )
}

function listPage(exports: List<Export>): Page {
  const isOpen = exports.data.some(({ status }) => status === 'queued' || status === 'running')
  return {
    title: 'Exports',
    content: (
      <>
        <PageHeader title="Exports" about="Records as files, kept for some days.">
          <LinkButton href="/imports">Imports</LinkButton>
          <LinkButton href="/exports/new" look="primary" icon="plus">
            New export
          </LinkButton>
        </PageHeader>
        {exports.data.length === 0 ? (
          <Empty icon="send" title="No export yet">
            <p>A list of records exports what it shows, with its filters; here, all records of a kind.</p>
          </Empty>
        ) : (
          <div class="stack" data-poll={isOpen ? 1500 : undefined}>
            <Table
              label="Exports"
              rows={exports.data}
              keyOf={({ id }) => id}
              columns={[
                { title: 'Export', cell: (one) => <FileLink of={one} /> },
                { title: 'Filters', cell: ({ query }) => <span dir="auto">{shown(query)}</span> },
                { title: 'Status', cell: ({ status }) => <Status of={status} /> },
                { title: 'Rows', align: 'right', cell: ({ rows }) => rows.toLocaleString('en') },
                { title: 'Size', align: 'right', cell: ({ bytes }) => sizeOf(bytes) },
                { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
                {
                  title: 'Expires',
                  cell: ({ expires_at, error }) => error?.message ?? (expires_at && <Time at={expires_at} />),
                },
              ]}
            />
            <Paging list={exports} />
          </div>
        )}
      </>
    ),
  }
}

function FileLink({ of: { id, entity, status, format } }: { of: Export }) {
  const name = `${labelOf(entity)} (${format})`
  if (status !== 'completed') return <>{name}</>
  return (
    <a href={`/app/v1/exports/${id}/file`} download>
      {name}
    </a>
  )
}

const shown = (query: Record<string, unknown>) =>
  Object.entries(query)
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join(', ')
    .slice(0, 200)

const sizeOf = (bytes: number) =>
  bytes < 1024
    ? `${bytes} B`
    : bytes < 1024 ** 2
      ? `${Math.round(bytes / 1024)} KB`
      : `${(bytes / 1024 ** 2).toFixed(1)} MB`

const newPage = ({
  typed,
  errors,
  status = 200,
}: {
  typed?: Form
  errors?: FormErrors
  status?: number
}): Page => ({
  title: 'New export',
  status,
  content: (
    <>
      <PageHeader title="New export" crumbs={[HERE]} />
      <SchemaForm
        action="/exports"
        fields={exportFields()}
        state={{ typed, errors }}
        button="Export"
        cancel="/exports"
        label="New export"
      />
    </>
  ),
})
