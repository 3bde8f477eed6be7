import { usePage } from '../context.ts'

/** How the search compares: `vector` and `hybrid` need an embedding. */
const MODES = [
  { id: '', name: 'words' },
  { id: 'vector', name: 'meaning' },
  { id: 'hybrid', name: 'words and meaning' },
]

/** The search of the knowledge base: its state is the address. */
export function SearchBox({
  collections,
  chosen,
}: {
  collections: readonly { id: string; name: string; embedding: unknown }[]
  /** The collection that is searched; all without it. */
  chosen?: string | undefined
}) {
  const { query } = usePage().view
  const hasVectors = collections.some(({ embedding }) => embedding)
  return (
    <form class="filters" method="get" action="/knowledge/search" aria-label="Search the knowledge base">
      <label class="search wide">
        Words or a question
        <input type="search" name="q" value={query.get('q') ?? ''} placeholder="/" required dir="auto" />
      </label>
      <label>
        In
        <select name="collection_id">
          <option value="">all collections</option>
          {collections.map(({ id, name }) => (
            <option key={id} value={id} selected={id === chosen}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {hasVectors && (
        <label>
          By
          <select name="mode">
            {MODES.map(({ id, name }) => (
              <option key={id} value={id} selected={id === (query.get('mode') ?? '')}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <button type="submit" class="button primary">
        Search
      </button>
    </form>
  )
}
