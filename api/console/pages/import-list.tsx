import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { Button, LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { ErrorSummary, Field } from '../components/field.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { textOf } from '../components/schema-form.tsx'
import { Status } from '../components/status.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { errorsOf, type FormErrors, NO_ERRORS } from '../forms/errors.ts'
import { labelOf } from '../forms/field-spec.ts'
import type { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import { IMPORTS, importPage } from '../imports/import.tsx'
import type { Import } from '../imports/shapes.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { mayWrite } from './record-list.tsx'

/** The imports, and the first step of a new one: its kind and its file. */
export const importListPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/imports',
    handler: async (view) => listPage(view, await view.read<List<Import>>(pageOf(view, '/app/v1/imports'))),
  },
  {
    method: 'GET',
    path: '/imports/new',
    handler: async (view) => newPage(view, {}),
  },
  {
    method: 'POST',
    path: '/imports',
    takesFile: () => '/imports/new',
    async handler(view) {
      const { form } = view
      const body = toBody(importFields(), form, { omitEmpty: true })
      const created = await view.call('POST', '/app/v1/imports', body)
      if (created.status >= 400) {
        const errors = errorsOf(created, NAMES)
        return newPage(view, { typed: form, errors, status: created.status })
      }
      const { id } = created.body as unknown as Import
      if (!form.file) return { redirect: `/imports/${id}` }
      const answer = await view.upload(`/app/v1/imports/${id}/file`, 'text/csv', form.file)
      if (answer.status < 400) return { redirect: `/imports/${id}` }
      const { others } = errorsOf(answer, [])
      return importPage(view, created.body as unknown as Import, { problems: others, status: answer.status })
    },
  },
]

const NAMES = ['entity', 'mode', 'by']

const importFields = () =>
  fieldsOf('createImport', NAMES, {
    entity: 'Kind of records',
    mode: 'What a row does',
    by: 'Records are found by',
  }).map((field) => (field.name === 'mode' ? { ...field, required: true } : field))

const MODES = [
  { id: 'create', name: 'makes a new record' },
  { id: 'upsert', name: 'changes the record that is found, else makes one' },
]

function listPage(view: View, imports: List<Import>): Page {
  const add = kindNames.some((kind) => mayWrite(view, kind)) && (
    <LinkButton href="/imports/new" look="primary" icon="plus">
      Import a file
    </LinkButton>
  )
  return {
    title: 'Imports',
    content: (
      <>
        <PageHeader title="Imports" about="Records from CSV files: of a spreadsheet, or of another product.">
          <LinkButton href="/exports">Exports</LinkButton>
          {imports.data.length > 0 && add}
        </PageHeader>
        {imports.data.length === 0 ? (
          <Empty icon="inbox" title="No import yet">
            <p>
              A file is read first: you see what its columns mean, try it without a change, and can undo it
              afterwards.
            </p>
            {add}
          </Empty>
        ) : (
          <>
            <Table
              label="Imports"
              rows={imports.data}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: 'Import',
                  cell: ({ id, entity }) => <a href={`/imports/${id}`}>{labelOf(entity)}</a>,
                },
                {
                  title: 'Status',
                  cell: ({ status, dry_run }) => (
                    <>
                      <Status of={status} /> {dry_run && <span class="muted">trial</span>}
                    </>
                  ),
                },
                { title: 'Rows', align: 'right', cell: ({ file }) => file?.rows.toLocaleString('en') },
                { title: 'Created', align: 'right', cell: ({ progress }) => progress.created },
                { title: 'Updated', align: 'right', cell: ({ progress }) => progress.updated },
                { title: 'Failed', align: 'right', cell: ({ progress }) => progress.failed },
                { title: 'When', cell: ({ created_at }) => <Time at={created_at} /> },
              ]}
            />
            <Paging list={imports} />
          </>
        )}
      </>
    ),
  }
}

function newPage(
  view: View,
  { typed, errors = NO_ERRORS, status = 200 }: { typed?: Form; errors?: FormErrors; status?: number },
): Page {
  const fields = importFields().map((field) =>
    field.name === 'entity'
      ? { ...field, choices: field.choices.filter((kind) => mayWrite(view, kind)) }
      : field,
  )
  const given: Record<string, string> = { entity: view.query.get('entity') ?? 'contacts' }
  return {
    title: 'Import a file',
    status,
    content: (
      <>
        <PageHeader
          title="Import a file"
          crumbs={[IMPORTS]}
          about="Nothing is written yet: the next page shows what was found in the file."
        />
        <PostForm action="/imports" class="form" label="Import a file" hasFile>
          <ErrorSummary errors={errors} labels={new Map(fields.map(({ name, label }) => [name, label]))} />
          {fields.map((spec) => (
            <Field
              key={spec.name}
              spec={spec}
              value={{ text: typed ? typed.get(spec.name) : (given[spec.name] ?? textOf(spec.initial)) }}
              errors={errors.byField.get(spec.name)}
              options={spec.name === 'mode' ? MODES : undefined}
            />
          ))}
          <FileField />
          <div class="form-actions">
            <Button look="primary">Read the file</Button>
            <LinkButton href="/imports">Cancel</LinkButton>
          </div>
        </PostForm>
      </>
    ),
  }
}

/** The last field of its form. */
const FileField = () => (
  <div class="field">
    <label for="f-file">
      File<span class="required"> required</span>
    </label>
    <input id="f-file" name="file" type="file" accept=".csv,.tsv,.txt,text/csv" required />
    <p class="help">
      CSV with a header, at most 32 MiB: comma, semicolon, tab or bar between the cells, in UTF-8, UTF-16 or
      Windows-1252.
    </p>
  </div>
)
