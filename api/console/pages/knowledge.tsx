import { LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { SearchBox } from '../components/search-box.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { mayCall } from '../forms/allowed.ts'
import { errorsOf } from '../forms/errors.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

export interface Collection {
  id: string
  name: string
  description: string | null
  language: string
  embedding: { model: string; status: string; embedded: number; passages: number } | null
  documents: number
  version: number
  updated_at: string
}

export const KNOWLEDGE = '/knowledge'
export const COLLECTIONS = `${KNOWLEDGE}/collections`
export const COLLECTION_NAMES = ['name', 'description', 'language']
export const COLLECTION_FIELDS = fieldsOf('createKnowledgeCollection', COLLECTION_NAMES)
const HERE = { href: KNOWLEDGE, label: 'Knowledge' }

/** The collections of the knowledge base, with its search. */
export const knowledgePages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: KNOWLEDGE,
    handler: async (view) =>
      listPage(view, await view.read<List<Collection>>(pageOf(view, '/app/v1/knowledge/collections'))),
  },
  {
    method: 'GET',
    path: `${COLLECTIONS}/new`,
    formOf: 'createKnowledgeCollection',
    handler: async () => formPage({}),
  },
  {
    method: 'POST',
    path: COLLECTIONS,
    async handler({ form, call }) {
      const body = toBody(COLLECTION_FIELDS, form, { omitEmpty: true })
      const answer = await call('POST', '/app/v1/knowledge/collections', body)
      if (answer.status >= 400)
        return formPage({ typed: form, errors: errorsOf(answer, COLLECTION_NAMES) }, answer.status)
      return { redirect: `${COLLECTIONS}/${(answer.body as unknown as Collection).id}?done=created` }
    },
  },
]

function listPage({ session }: View, collections: List<Collection>): Page {
  const add = mayCall(session!.role, 'createKnowledgeCollection') && (
    <LinkButton href={`${COLLECTIONS}/new`} look="primary" icon="plus">
      New collection
    </LinkButton>
  )
  return {
    title: 'Knowledge',
    content: (
      <>
        <PageHeader
          title="Knowledge"
          about="Texts that workflows and agents search: manuals, answers, price lists. A collection has documents of one language."
        >
          {collections.data.length > 0 && add}
        </PageHeader>
        {collections.data.length === 0 ? (
          <Empty icon="library" title="No collection yet">
            <p>Make one, add texts or files, and search them by words or questions.</p>
            {add}
          </Empty>
        ) : (
          <>
            <SearchBox collections={collections.data} />
            <Table
              label="Collections"
              rows={collections.data}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: 'Name',
                  cell: ({ id, name }) => (
                    <a href={`${COLLECTIONS}/${id}`} dir="auto" title={name}>
                      {name}
                    </a>
                  ),
                },
                {
                  title: 'Description',
                  cell: ({ description }) => (
                    <span dir="auto" title={description?.slice(0, 400)}>
                      {description?.slice(0, 120)}
                    </span>
                  ),
                },
                { title: 'Language', cell: ({ language }) => language },
                {
                  title: 'Documents',
                  align: 'right',
                  cell: ({ documents }) => documents.toLocaleString('en'),
                },
                { title: 'Search by meaning', cell: ({ embedding }) => (embedding ? embedding.model : 'no') },
                { title: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
              ]}
            />
            <Paging list={collections} />
          </>
        )}
      </>
    ),
  }
}

const formPage = (state: FormState, status = 200): Page => ({
  title: 'New collection',
  status,
  content: (
    <>
      <PageHeader title="New collection" crumbs={[HERE]} />
      <SchemaForm
        action={COLLECTIONS}
        fields={COLLECTION_FIELDS}
        state={state}
        button="Make the collection"
        cancel={KNOWLEDGE}
        label="New collection"
      />
    </>
  ),
})
