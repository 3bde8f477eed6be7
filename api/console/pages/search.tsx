import pLimit from 'p-limit'
import { includesRole } from '../../../db/model/access/roles.ts'
import type { KindName } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import { Empty } from '../components/empty.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { iconOfKind } from '../components/navigation.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { labelOf } from '../forms/field-spec.ts'
import { type RecordRow, titleOf } from '../records/record.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { settingsFor } from '../settings-pages.ts'
import { mayWrite } from './record-list.tsx'
import { mayAuthor, type WorkflowSummary } from './workflow-list.tsx'

/** A place that the search leads to. */
interface Found {
  href: string
  label: string
  icon: IconName
  /** What tells it from others of its name. */
  detail?: string | undefined
}

interface Section {
  title: string
  found: Found[]
}

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i

/** Shorter texts are in nearly every record. */
const SHORTEST = 2
const LIMIT = 5
/** There is a list of each kind: a search leaves connections to others. */
const AT_ONCE = 4

/** Finds records, workflows and runs, pages and actions. The dialog of ⌘K shows what this page finds. */
export const searchPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/search',
    async handler(view) {
      const typed = (view.query.get('q') ?? '').trim().slice(0, 200)
      const places: Section = { title: 'Pages and actions', found: placesOf(view, typed) }
      if (typed.length < SHORTEST) return page(typed, [places])
      const inTurn = pLimit(AT_ONCE)
      const [records, workflows, runs] = await Promise.all([
        Promise.all(kindNames.map((kind) => inTurn(() => recordsOf(view, kind, typed)))),
        inTurn(() => workflowsOf(view, typed)),
        inTurn(() => runsOf(view, typed)),
      ])
      return page(typed, [...records, workflows, runs, places])
    },
  },
]

/** A list of the API; empty where the role or the kind does not allow the search. */
async function listOf<T>({ call }: View, path: string, query: Record<string, string>): Promise<T[]> {
  const answer = await call('GET', `${path}?${new URLSearchParams({ limit: String(LIMIT), ...query })}`)
  return answer.status < 400 ? (answer.body as unknown as List<T>).data : []
}

async function recordsOf(view: View, kind: KindName, typed: string): Promise<Section> {
  const by = UUID.test(typed) ? { 'id[in]': typed } : { q: typed }
  const records = await listOf<RecordRow>(view, `/app/v1/objects/${kind}`, { ...by, count: 'none' })
  return {
    title: labelOf(kind),
    found: records.map((record) => ({
      href: `/records/${kind}/${record.id}`,
      label: titleOf(record),
      icon: iconOfKind(kind),
      detail: [record.email, record.domain, record.stage].find((one) => typeof one === 'string') as
        | string
        | undefined,
    })),
  }
}

async function workflowsOf(view: View, typed: string): Promise<Section> {
  const found = UUID.test(typed)
    ? [await oneOf<WorkflowSummary>(view, `/app/v1/workflows/${typed}`)].flatMap((one) => one ?? [])
    : await listOf<WorkflowSummary>(view, '/app/v1/workflows', { q: typed })
  return {
    title: 'Workflows',
    found: found.map(({ workflow_id, name, status }) => ({
      href: `/workflows/${workflow_id}`,
      label: name,
      icon: 'workflow',
      detail: status.toLowerCase(),
    })),
  }
}

/** A run has no name: it is found by its id. */
async function runsOf(view: View, typed: string): Promise<Section> {
  const run = UUID.test(typed)
    ? await oneOf<{ run_id: string; workflow_name: string; status: string }>(view, `/app/v1/runs/${typed}`)
    : undefined
  if (!run) return { title: 'Runs', found: [] }
  const { run_id, workflow_name, status } = run
  return {
    title: 'Runs',
    found: [{ href: `/runs/${run_id}`, label: `Run of ${workflow_name}`, icon: 'play', detail: status }],
  }
}

async function oneOf<T>({ call }: View, path: string): Promise<T | undefined> {
  const answer = await call('GET', path)
  return answer.status < 400 ? (answer.body as T) : undefined
}

/** The pages and actions of this role whose names have all words. */
function placesOf(view: View, typed: string): Found[] {
  const isAdmin = includesRole(view.session!.role, 'admin')
  const all: (Found | false)[] = [
    { href: '/', label: 'Home', icon: 'house' },
    ...kindNames.map(
      (kind): Found => ({ href: `/records/${kind}`, label: labelOf(kind), icon: iconOfKind(kind) }),
    ),
    { href: '/records/deals/board', label: 'Deals by stage', icon: 'handshake' },
    { href: '/workflows', label: 'Workflows', icon: 'workflow' },
    { href: '/workflows/templates', label: 'Templates of workflows', icon: 'workflow' },
    { href: '/workflows/nodes', label: 'Nodes of workflows', icon: 'workflow' },
    { href: '/runs', label: 'Runs', icon: 'play' },
    { href: '/runs?status=failed', label: 'Failed runs', icon: 'circle-x' },
    { href: '/imports', label: 'Imports', icon: 'inbox' },
    { href: '/exports', label: 'Exports', icon: 'send' },
    { href: '/analytics', label: 'Analytics', icon: 'chart-column' },
    { href: '/knowledge', label: 'Knowledge', icon: 'library' },
    ...settingsFor(view.session!.role).flatMap(({ pages }) => pages),
    { href: '/docs/overview', label: 'Documentation', icon: 'book-open' },
    ...kindNames.map(
      (kind): Found | false =>
        mayWrite(view, kind) && {
          href: `/records/${kind}/new`,
          label: `New ${kinds[kind].object.replace('_', ' ')}`,
          icon: 'plus',
        },
    ),
    mayAuthor(view) && { href: '/workflows/new', label: 'New workflow', icon: 'plus' },
    mayWrite(view, 'contacts') && { href: '/imports/new', label: 'Import a file', icon: 'plus' },
    isAdmin && { href: '/settings/keys/new', label: 'New API key', icon: 'plus' },
  ]
  const words = typed.toLowerCase().split(/\s+/)
  return all.filter(
    (one): one is Found => one !== false && words.every((word) => one.label.toLowerCase().includes(word)),
  )
}

function page(typed: string, sections: Section[]): Page {
  const shown = sections.filter(({ found }) => found.length > 0)
  return {
    title: 'Search',
    content: (
      <>
        <PageHeader
          title="Search"
          about="Records by their texts, workflows by their names, everything by its id; pages and actions. From anywhere with ⌘K or Ctrl-K."
        />
        <form class="filters" method="get" action="/search" aria-label="Search">
          <label class="search">
            Search
            <input type="search" name="q" value={typed} maxLength={200} data-focus dir="auto" />
          </label>
          <button type="submit" class="button plain">
            Search
          </button>
        </form>
        <div class="results">
          {shown.map(({ title, found }) => (
            <section key={title}>
              <h2>{title}</h2>
              <ul>
                {found.map(({ href, label, icon, detail }) => (
                  <li key={href}>
                    <a href={href}>
                      <Icon name={icon} />
                      <span dir="auto">{label.slice(0, 200)}</span>
                      {detail && (
                        <span class="muted" dir="auto">
                          {detail.slice(0, 100)}
                        </span>
                      )}
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          ))}
          {shown.length === 0 && (
            <Empty icon="search" title="Nothing found">
              <p>Nothing that you may see has “{typed}” in its name or text.</p>
            </Empty>
          )}
        </div>
      </>
    ),
  }
}
