import { ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Chips } from '../components/chips.tsx'
import { Empty } from '../components/empty.tsx'
import { Filters, TextFilter } from '../components/filters.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { SearchBox } from '../components/search-box.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { mayCall } from '../forms/allowed.ts'
import { errorsOf } from '../forms/errors.ts'
import { storedBefore, toBody } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { COLLECTION_FIELDS, COLLECTION_NAMES, COLLECTIONS, type Collection, KNOWLEDGE } from './knowledge.tsx'

interface DocumentSummary {
  id: string
  title: string
  format: string
  tags: string[]
  passages: number
  updated_at: string
}

const FILTERS = ['tags', 'external_id']

/** A collection: its documents, its name and language, and its deletion. */
export const knowledgeCollectionPages: ConsoleRoute[] = [
  { method: 'GET', path: `${COLLECTIONS}/{collection_id}`, handler: (view) => onePage(view) },
  {
    method: 'GET',
    path: `${COLLECTIONS}/{collection_id}/edit`,
    formOf: 'updateKnowledgeCollection',
    handler: async (view) => editPage(await read(view), {}),
  },
  {
    method: 'POST',
    path: `${COLLECTIONS}/{collection_id}`,
    async handler(view) {
      const { form, call, params } = view
      const body = toBody(COLLECTION_FIELDS, form, { stored: storedBefore(form) })
      const headers = { 'if-match': `"${form.get('version')}"` }
      const answer = await call('PATCH', apiPath(params.collection_id!), body, headers)
      if (answer.status < 400) return { redirect: `${COLLECTIONS}/${params.collection_id}?done=saved` }
      const errors = errorsOf(answer, COLLECTION_NAMES)
      return editPage(await read(view), { typed: form, errors }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${COLLECTIONS}/{collection_id}/delete`,
    async handler({ change, params }) {
      await change('DELETE', apiPath(params.collection_id!))
      return { redirect: `${KNOWLEDGE}?done=removed` }
    },
  },
]

const apiPath = (id: string) => `/app/v1/knowledge/collections/${encodeURIComponent(id)}`

const read = ({ read, params }: View) => read<Collection>(apiPath(params.collection_id!))

async function onePage(view: View): Promise<Page> {
  const [collection, answer] = await Promise.all([
    read(view),
    view.call('GET', pageOf(view, `${apiPath(view.params.collection_id!)}/documents`, FILTERS)),
  ])
  const { id, name, description, language, embedding } = collection
  const documents = answer.status < 400 ? (answer.body as unknown as List<DocumentSummary>) : undefined
  const path = `${COLLECTIONS}/${id}`
  const may = mayCall(view.session!.role, 'updateKnowledgeCollection')
  const isFiltered = FILTERS.some((filter) => view.query.get(filter))
  const add = may && (
    <LinkButton href={`${path}/documents/new`} look="primary" icon="plus">
      Add a document
    </LinkButton>
  )
  return {
    title: name,
    status: answer.status,
    content: (
      <>
        <PageHeader
          title={<span dir="auto">{name}</span>}
          crumbs={[{ href: KNOWLEDGE, label: 'Knowledge' }]}
          about={description && <span dir="auto">{description}</span>}
        >
          {may && <LinkButton href={`${path}/edit`}>Edit</LinkButton>}
          {may && (
            <ConfirmButton
              action={`${path}/delete`}
              question={`Deletes “${name}” with its ${collection.documents.toLocaleString('en')} documents. This cannot be undone.`}
              confirm="Delete the collection"
              look="danger"
            >
              Delete
            </ConfirmButton>
          )}
          {add}
        </PageHeader>
        <p class="muted">
          {`Language: ${language}. `}
          {embedding
            ? `Search by meaning with ${embedding.model}: ${embedding.status}, ${embedding.embedded} of ${embedding.passages} passages.`
            : 'Searched by words; an embedding, set by the API, adds the search by meaning.'}
        </p>
        <SearchBox collections={[collection]} chosen={id} />
        <h2>Documents</h2>
        <Filters>
          <TextFilter name="tags" label="Has all these tags (a,b)" />
          <TextFilter name="external_id" label="External ID" />
        </Filters>
        {!documents && <Refusal of={answer} />}
        {documents && documents.data.length > 0 && <Documents of={documents} />}
        {documents?.data.length === 0 && isFiltered && (
          <Empty icon="search" title="No document matches">
            <LinkButton href={path}>Show all</LinkButton>
          </Empty>
        )}
        {documents?.data.length === 0 && !isFiltered && (
          <Empty icon="file-text" title="No document yet">
            <p>A document is searchable at once: its headings and paragraphs divide it into passages.</p>
            {add}
          </Empty>
        )}
      </>
    ),
  }
}

const Documents = ({ of: documents }: { of: List<DocumentSummary> }) => (
  <>
    <Table
      label="Documents"
      rows={documents.data}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'Title',
          cell: ({ id, title }) => (
            <a href={`${KNOWLEDGE}/documents/${id}`} dir="auto" title={title}>
              {title}
            </a>
          ),
        },
        { title: 'Format', cell: ({ format }) => format },
        { title: 'Tags', cell: ({ tags }) => <Chips of={tags.slice(0, 8)} /> },
        { title: 'Passages', align: 'right', cell: ({ passages }) => passages.toLocaleString('en') },
        { title: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
      ]}
    />
    <Paging list={documents} />
  </>
)

const editPage = (collection: Collection, state: FormState, status = 200): Page => ({
  title: `Edit ${collection.name}`,
  status,
  content: (
    <>
      <PageHeader
        title="Edit"
        crumbs={[
          { href: KNOWLEDGE, label: 'Knowledge' },
          { href: `${COLLECTIONS}/${collection.id}`, label: collection.name },
        ]}
      />
      <Card>
        <SchemaForm
          action={`${COLLECTIONS}/${collection.id}`}
          fields={COLLECTION_FIELDS}
          state={{
            stored: {
              name: collection.name,
              description: collection.description ?? '',
              language: collection.language,
            },
            ...state,
          }}
          button="Save"
          cancel={`${COLLECTIONS}/${collection.id}`}
          label={`Edit ${collection.name}`}
        >
          <input
            type="hidden"
            name="version"
            value={state.typed?.get('version') || String(collection.version)}
          />
        </SchemaForm>
      </Card>
    </>
  ),
})
