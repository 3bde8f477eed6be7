import { Chips } from '../components/chips.tsx'
import { Empty } from '../components/empty.tsx'
import { Highlighted } from '../components/highlighted.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { SearchBox } from '../components/search-box.tsx'
import { ShareBar } from '../components/share-bar.tsx'
import { Paging } from '../components/table.tsx'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { type Collection, KNOWLEDGE } from './knowledge.tsx'

interface Passage {
  document_id: string
  collection_id: string
  position: number
  title: string
  heading: string
  highlight: string
  score: number
  match: 'all' | 'any' | 'vector'
  tags: string[]
  source_url: string | null
}

/** Passages have up to 1,600 characters: a page of these is no longer than one of records. */
const LIMIT = '15'

/** The passages that a search finds, best first, with their scores. */
export const knowledgeSearchPages: ConsoleRoute[] = [
  { method: 'GET', path: `${KNOWLEDGE}/search`, handler: (view) => page(view) },
]

const PARAMETERS = ['q', 'collection_id', 'mode', 'tags', 'cursor']

async function page(view: View): Promise<Page> {
  const { query } = view
  const sent = [...query].filter(([name, value]) => PARAMETERS.includes(name) && value !== '')
  const [answer, collections] = await Promise.all([
    view.call('GET', `/app/v1/knowledge/search?${new URLSearchParams([...sent, ['limit', LIMIT]])}`),
    view.read<List<Collection>>('/app/v1/knowledge/collections?limit=200'),
  ])
  const passages = answer.status < 400 ? (answer.body as unknown as List<Passage>) : undefined
  return {
    title: 'Search the knowledge base',
    status: answer.status,
    content: (
      <>
        <PageHeader title="Search the knowledge base" crumbs={[{ href: KNOWLEDGE, label: 'Knowledge' }]} />
        <SearchBox collections={collections.data} chosen={query.get('collection_id') ?? undefined} />
        {!passages && <Refusal of={answer} />}
        {passages?.data.length === 0 && (
          <Empty icon="search" title="Nothing found">
            <p>No passage has one of these words. Fewer or other words find more.</p>
          </Empty>
        )}
        {passages && passages.data.length > 0 && (
          <>
            <ol class="passages">
              {passages.data.map((passage) => (
                <li key={`${passage.document_id} ${passage.position}`} class="card">
                  <PassageView of={passage} collections={collections.data} />
                </li>
              ))}
            </ol>
            <Paging list={passages} />
          </>
        )}
      </>
    ),
  }
}

const MATCHES = { all: 'has every word', any: 'has some of the words', vector: 'near in meaning' }

function PassageView({ of: passage, collections }: { of: Passage; collections: Collection[] }) {
  const { document_id, collection_id, title, heading, highlight, score, match, tags, source_url } = passage
  return (
    <>
      <header>
        <h2>
          <a href={`${KNOWLEDGE}/documents/${document_id}`} dir="auto">
            {title}
          </a>
        </h2>
        <span class="share-of" title="The score, from 0 to 1; only comparable within one search.">
          <ShareBar of={score} />
          {score.toFixed(2)}
        </span>
      </header>
      {heading && (
        <p class="muted" dir="auto">
          {heading}
        </p>
      )}
      <p class="passage" dir="auto">
        <Highlighted html={highlight} />
      </p>
      <p class="muted">
        <span dir="auto">{collections.find(({ id }) => id === collection_id)?.name}</span>, {MATCHES[match]}
        {source_url && /^https?:\/\//.test(source_url) && (
          <>
            {', '}
            <a href={source_url} rel="noreferrer noopener" target="_blank">
              source
            </a>
          </>
        )}
      </p>
      {tags.length > 0 && <Chips of={tags} />}
    </>
  )
}
