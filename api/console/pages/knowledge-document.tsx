import { typeOfName } from '../../../db/model/knowledge/files/extract.ts'
import { KNOWLEDGE as LIMITS } from '../../../workflows/shared/limits.ts'
import { ConfirmButton, LinkButton } from '../components/button.tsx'
import { bytesText } from '../components/bytes.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Chips } from '../components/chips.tsx'
import { Json } from '../components/code.tsx'
import { ErrorSummary, Field } from '../components/field.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { type FormState, SchemaForm, textOf } from '../components/schema-form.tsx'
import { Tabs } from '../components/tabs.tsx'
import { Time } from '../components/time.tsx'
import { mayCall } from '../forms/allowed.ts'
import { errorsOf, type FormErrors, NO_ERRORS } from '../forms/errors.ts'
import type { FieldSpec } from '../forms/field-spec.ts'
import { Form } from '../forms/form.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { storedBefore, toBody } from '../forms/to-body.ts'
import type { ConsoleRoute, Page, View } from '../route.ts'
import { COLLECTIONS, type Collection, KNOWLEDGE } from './knowledge.tsx'

interface Document {
  id: string
  collection_id: string
  title: string
  body: string
  format: string
  tags: string[]
  source_url: string | null
  external_id: string | null
  passages: number
  version: number
  created_at: string
  updated_at: string
}

const DOCUMENTS = `${KNOWLEDGE}/documents`
const NAMES = ['title', 'body', 'format', 'tags', 'source_url', 'external_id']
const FIELDS = fieldsOf('createKnowledgeDocument', NAMES, { external_id: 'External ID', body: 'Text' }).map(
  asShown,
)
/** What is given besides a file. */
const UPLOADED = fieldsOf('fetchKnowledgeDocument', ['title', 'tags'])
  .map(asShown)
  .map((field) =>
    field.name === 'title'
      ? { ...field, help: 'Empty: that of the file; only PDF and Word files can have one.' }
      : field,
  )
const ACCEPTED = '.pdf,.docx,.md,.markdown,.html,.htm,.txt'
const FETCHED_NAMES = ['url', 'title', 'tags']
const FETCHED = fieldsOf('fetchKnowledgeDocument', FETCHED_NAMES).map(asShown)

/** A title has one line; a text has several, also if its schema gives no limit in characters. */
function asShown(field: FieldSpec): FieldSpec {
  if (field.name === 'title') return { ...field, type: 'text' }
  return field.name === 'body' ? { ...field, type: 'long_text' } : field
}

/** The documents of a collection: added as a text or from an address, shown, changed and deleted. */
export const knowledgeDocumentPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: `${COLLECTIONS}/{collection_id}/documents/new`,
    formOf: 'createKnowledgeDocument',
    handler: async (view) => newPage(view, wayIn(view.query), {}),
  },
  {
    method: 'POST',
    path: `${COLLECTIONS}/{collection_id}/documents`,
    async handler(view) {
      const { form, call, params } = view
      const body = toBody(FIELDS, form, { omitEmpty: true })
      const answer = await call('POST', `${collectionPath(params.collection_id!)}/documents`, body)
      if (answer.status < 400) return { redirect: madeAt(answer) }
      return newPage(view, 'text', { typed: form, errors: errorsOf(answer, NAMES) }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${COLLECTIONS}/{collection_id}/fetch`,
    async handler(view) {
      const { form, call, params } = view
      const body = toBody(FETCHED, form, { omitEmpty: true })
      const answer = await call('POST', `${collectionPath(params.collection_id!)}/documents/fetch`, body)
      if (answer.status < 400) return { redirect: madeAt(answer) }
      return newPage(view, 'address', { typed: form, errors: errorsOf(answer, FETCHED_NAMES) }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${COLLECTIONS}/{collection_id}/upload`,
    takesFile: ({ params }) => `${COLLECTIONS}/${params.collection_id}/documents/new?from=file`,
    async handler(view) {
      const { form, params } = view
      const refused = (errors: FormErrors, status: number) =>
        newPage(view, 'file', { typed: form, errors }, status)
      if (!form.file) return refused({ byField: new Map([['file', ['is required']]]), others: [] }, 422)
      const { title, tags } = toBody(UPLOADED, form, { omitEmpty: true }) as {
        title?: string
        tags?: string[]
      }
      const query = new URLSearchParams({
        ...(title && { title }),
        ...(tags && tags.length > 0 && { tags: tags.join(',') }),
      })
      const type = typeOfName(form.file.name) ?? 'application/octet-stream'
      const to = `${collectionPath(params.collection_id!)}/documents/upload?${query}`
      const answer = await view.upload(to, type, form.file, 'POST')
      if (answer.status < 400) return { redirect: madeAt(answer) }
      return refused(errorsOf(answer, ['title', 'tags']), answer.status)
    },
  },
  {
    method: 'GET',
    path: `${DOCUMENTS}/{document_id}`,
    handler: async (view) => onePage(view, await read(view)),
  },
  {
    method: 'GET',
    path: `${DOCUMENTS}/{document_id}/edit`,
    formOf: 'updateKnowledgeDocument',
    handler: async (view) => editPage(await read(view), {}),
  },
  {
    method: 'POST',
    path: `${DOCUMENTS}/{document_id}`,
    async handler(view) {
      const { form, call, params } = view
      const body = toBody(FIELDS, form, { stored: storedBefore(form) })
      const headers = { 'if-match': `"${form.get('version')}"` }
      const answer = await call('PATCH', apiPath(params.document_id!), body, headers)
      if (answer.status < 400) return { redirect: `${DOCUMENTS}/${params.document_id}?done=saved` }
      const errors = errorsOf(answer, NAMES)
      return editPage(await read(view), { typed: form, errors }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${DOCUMENTS}/{document_id}/delete`,
    async handler(view) {
      const { collection_id } = await read(view)
      await view.change('DELETE', apiPath(view.params.document_id!))
      return { redirect: `${COLLECTIONS}/${collection_id}?done=removed` }
    },
  },
]

const apiPath = (id: string) => `/app/v1/knowledge/documents/${encodeURIComponent(id)}`
const collectionPath = (id: string) => `/app/v1/knowledge/collections/${encodeURIComponent(id)}`

const read = ({ read, params }: View) => read<Document>(apiPath(params.document_id!))

const wayIn = (query: URLSearchParams): Way =>
  WAYS.find(({ way }) => way === query.get('from'))?.way ?? 'text'

const madeAt = ({ body }: { body: Record<string, unknown> }) => `${DOCUMENTS}/${body.id}?done=created`

/** How a document comes in. */
const WAYS = [
  { way: 'text', label: 'A text', operation: 'createKnowledgeDocument' },
  { way: 'file', label: 'A file', operation: 'uploadKnowledgeDocument' },
  { way: 'address', label: 'From an address', operation: 'fetchKnowledgeDocument' },
] as const
type Way = (typeof WAYS)[number]['way']

async function newPage(view: View, way: Way, state: FormState, status = 200): Promise<Page> {
  const { id, name } = await view.read<Collection>(collectionPath(view.params.collection_id!))
  const path = `${COLLECTIONS}/${id}`
  const hrefOf = (of: Way) => `${path}/documents/new${of === 'text' ? '' : `?from=${of}`}`
  const ways = WAYS.filter(({ operation }) => mayCall(view.session!.role, operation))
  return {
    title: 'Add a document',
    status,
    content: (
      <>
        <PageHeader
          title="Add a document"
          crumbs={[
            { href: KNOWLEDGE, label: 'Knowledge' },
            { href: path, label: name },
          ]}
        />
        <Tabs
          label="How it comes in"
          tabs={ways.map((one) => ({ href: hrefOf(one.way), label: one.label }))}
          current={hrefOf(way)}
        />
        {way === 'text' && (
          <SchemaForm
            action={`${path}/documents`}
            fields={FIELDS}
            state={state}
            button="Add the text"
            cancel={path}
            label="A text"
          />
        )}
        {way === 'file' && <Upload path={path} state={state} />}
        {way === 'address' && (
          <>
            <p class="muted">
              Fetches a page or file once, and adds its text. A scheduled workflow can keep it up to date.
            </p>
            <SchemaForm
              action={`${path}/fetch`}
              fields={FETCHED}
              state={state}
              button="Fetch and add"
              cancel={path}
              label="From an address"
            />
          </>
        )}
      </>
    ),
  }
}

/** The file is the last field: what precedes it is read before it is passed on. */
function Upload({
  path,
  state: { typed = new Form(), errors = NO_ERRORS },
}: {
  path: string
  state: FormState
}) {
  return (
    <PostForm action={`${path}/upload`} class="form" label="A file" hasFile>
      <ErrorSummary errors={errors} labels={new Map(UPLOADED.map(({ name, label }) => [name, label]))} />
      {UPLOADED.map((spec) => (
        <Field
          key={spec.name}
          spec={spec}
          value={{ text: typed.get(spec.name) }}
          errors={errors.byField.get(spec.name)}
        />
      ))}
      <div class="field">
        <label for="f-file">
          File <span class="required">required</span>
        </label>
        <input
          type="file"
          id="f-file"
          name="file"
          required
          accept={ACCEPTED}
          aria-describedby="f-file-help"
        />
        <p class="help" id="f-file-help">
          {`A PDF, a Word document, Markdown, HTML or text, of at most ${bytesText(LIMITS.fileBytes)}. Its text becomes a document; the file itself is not kept.`}
        </p>
      </div>
      <div class="form-actions">
        <button type="submit" class="button primary">
          Add the file
        </button>
        <LinkButton href={path}>Cancel</LinkButton>
      </div>
    </PostForm>
  )
}

function onePage({ session }: View, document: Document): Page {
  const { id, title, body, format, tags, source_url, external_id, passages, created_at, updated_at } =
    document
  const may = mayCall(session!.role, 'updateKnowledgeDocument')
  return {
    title,
    content: (
      <>
        <PageHeader
          title={<span dir="auto">{title}</span>}
          crumbs={[
            { href: KNOWLEDGE, label: 'Knowledge' },
            { href: `${COLLECTIONS}/${document.collection_id}`, label: 'Collection' },
          ]}
        >
          {may && <LinkButton href={`${DOCUMENTS}/${id}/edit`}>Edit</LinkButton>}
          {may && (
            <ConfirmButton
              action={`${DOCUMENTS}/${id}/delete`}
              question={`Deletes “${title}” for good: searches no longer find it.`}
              confirm="Delete the document"
              look="danger"
            >
              Delete
            </ConfirmButton>
          )}
        </PageHeader>
        <Card title="Document">
          <Facts
            of={[
              ['Format', format],
              ['Passages', passages.toLocaleString('en')],
              ['Tags', tags.length > 0 ? <Chips of={tags} key="tags" /> : null],
              [
                'Source',
                source_url && /^https?:\/\//.test(source_url) ? (
                  <a href={source_url} rel="noreferrer noopener" target="_blank" key="source">
                    {source_url}
                  </a>
                ) : null,
              ],
              ['External ID', external_id],
              ['Created', <Time at={created_at} key="created" />],
              ['Changed', <Time at={updated_at} key="changed" />],
            ]}
          />
        </Card>
        <Card title="Text">
          <Json value={body} label="the text" />
        </Card>
      </>
    ),
  }
}

/** A text that is too long for a page is changed by the API: a form would send its beginning only. */
const MAX_EDITED = 40_000

function editPage(document: Document, state: FormState, status = 200): Page {
  const path = `${DOCUMENTS}/${document.id}`
  const isLong = document.body.length > MAX_EDITED
  const stored = Object.fromEntries(NAMES.map((name) => [name, textOf(document[name as keyof Document])]))
  return {
    title: `Edit ${document.title}`,
    status,
    content: (
      <>
        <PageHeader title="Edit" crumbs={[{ href: path, label: document.title }]} />
        {isLong && (
          <p class="notice">
            {`The text has ${document.body.length.toLocaleString('en')} characters: it is changed by the API, or by deleting it and adding it again.`}
          </p>
        )}
        <SchemaForm
          action={path}
          fields={isLong ? FIELDS.filter(({ name }) => name !== 'body') : FIELDS}
          state={{ stored: isLong ? { ...stored, body: '' } : stored, ...state }}
          button="Save"
          cancel={path}
          label={`Edit ${document.title}`}
        >
          <input
            type="hidden"
            name="version"
            value={state.typed?.get('version') || String(document.version)}
          />
        </SchemaForm>
      </>
    ),
  }
}
