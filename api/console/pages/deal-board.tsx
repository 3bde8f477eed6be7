import pLimit from 'p-limit'
import { Button, LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { withQuery } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { errorsOf } from '../forms/errors.ts'
import { namesOf, type RecordRow, titleOf } from '../records/record.ts'
import { money } from '../records/value.tsx'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { mayWrite } from './record-list.tsx'

interface Stage {
  name: string
  label: string
  outcome: string
  probability: number
}

interface Pipeline {
  name: string
  label: string
  is_default: boolean
  stages: Stage[]
}

/** A stage with a page of its deals. */
interface Column {
  stage: Stage
  deals: List<RecordRow>
  /** One for each currency; undefined: the role does not see them. */
  sums: string[] | undefined
}

const BOARD = '/records/deals/board'
const CRUMBS = [{ href: '/records/deals', label: 'Deals' }]

/** A pipeline may have fifty stages: its page leaves connections to others. */
const AT_ONCE = 4

/** Deals of a column at once: a board stays within 60 KB. */
const LIMIT = 10

/** The deals of a pipeline by stage. They move by a drag, by the buttons of their card, or by a form with all stages. */
export const dealBoardPages: ConsoleRoute[] = [
  { method: 'GET', path: BOARD, handler: (view) => boardPage(view) },
  {
    method: 'POST',
    path: BOARD,
    async handler(view) {
      const { form, query } = view
      const [id = '', version = '', stage = ''] = form.get('move').split(' ')
      const answer = await view.call(
        'PATCH',
        `/app/v1/objects/deals/${encodeURIComponent(id)}`,
        { stage },
        { 'if-match': `"${version}"` },
      )
      const pipeline = query.get('pipeline')
      const back = new URLSearchParams({ ...(pipeline && { pipeline }), done: 'moved' })
      if (answer.status < 400) return { redirect: `${BOARD}?${back}` }
      return boardPage(view, { id, problems: problemsOf(answer), status: answer.status })
    },
  },
  {
    method: 'GET',
    path: '/records/deals/{entity_id}/move',
    formOf: 'updateDeal',
    async handler(view) {
      const { read, params } = view
      const [deal, pipelines] = await Promise.all([
        read<RecordRow>(`/app/v1/objects/deals/${params.entity_id}`),
        pipelinesOf(view),
      ])
      return movePage(deal, pipelines.find(({ name }) => name === deal.pipeline)!)
    },
  },
]

const pipelinesOf = async ({ read }: View) => (await read<List<Pipeline>>('/app/v1/pipelines')).data

function problemsOf(answer: { status: number; body: Record<string, unknown> }): string[] {
  if (answer.status === 412)
    return ['Somebody else has changed it meanwhile. The board shows it as it is now.']
  const { byField, others } = errorsOf(answer, [])
  return [...others, ...[...byField.values()].flat()]
}

async function boardPage(
  view: View,
  refused?: { id: string; problems: string[]; status: number },
): Promise<Page> {
  const pipelines = await pipelinesOf(view)
  const chosen = view.query.get('pipeline')
  const pipeline =
    pipelines.find(({ name, is_default }) => (chosen ? name === chosen : is_default)) ?? pipelines[0]
  const title = 'Deals by stage'
  const header = (
    <PageHeader title={title} crumbs={CRUMBS}>
      <LinkButton href="/records/deals">Table</LinkButton>
      {mayWrite(view, 'deals') && (
        <LinkButton href="/records/deals/new" look="primary" icon="plus">
          New deal
        </LinkButton>
      )}
    </PageHeader>
  )
  if (!pipeline)
    return {
      title,
      content: (
        <>
          {header}
          <Empty icon="handshake" title="No pipeline" />
        </>
      ),
    }
  const columns = await columnsOf(view, pipeline)
  const names = await namesOf(
    view,
    columns.flatMap(({ deals }) =>
      deals.data.map((deal): [string, unknown] => ['companies', deal.company_id]),
    ),
  )
  return {
    title,
    status: refused?.status ?? 200,
    content: (
      <>
        {header}
        {refused && (
          <div class="notice red" role="alert" tabIndex={-1} data-focus>
            <p>Not moved:</p>
            <ul>
              {refused.problems.map((problem) => (
                <li key={problem}>{problem}</li>
              ))}
            </ul>
            <a href={`/records/deals/${encodeURIComponent(refused.id)}/edit`}>Edit the deal</a>
          </div>
        )}
        {pipelines.length > 1 && (
          <nav class="tabs" aria-label="Pipelines">
            {pipelines.map(({ name, label }) => (
              <a
                href={`${BOARD}?pipeline=${name}`}
                key={name}
                aria-current={name === pipeline.name ? 'page' : undefined}
              >
                {label}
              </a>
            ))}
          </nav>
        )}
        {mayWrite(view, 'deals') && (
          <PostForm action={`${BOARD}?pipeline=${pipeline.name}`} id="move" class="inline">
            {null}
          </PostForm>
        )}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
        <section class="board" aria-label={pipeline.label} tabIndex={0} data-board>
          {columns.map((column, i) => (
            <BoardColumn
              column={column}
              before={pipeline.stages[i - 1]}
              after={pipeline.stages[i + 1]}
              names={names}
              mayMove={mayWrite(view, 'deals')}
              query={view.query}
              key={column.stage.name}
            />
          ))}
        </section>
      </>
    ),
  }
}

async function columnsOf(view: View, pipeline: Pipeline): Promise<Column[]> {
  const sums = sumsOf(view, pipeline)
  const inTurn = pLimit(AT_ONCE)
  return Promise.all(
    pipeline.stages.map((stage) =>
      inTurn(async () => {
        const cursor = view.query.get(`cursor_${stage.name}`)
        const query = new URLSearchParams({
          pipeline: pipeline.name,
          stage: stage.name,
          sort: 'stage_changed_at',
          limit: String(LIMIT),
          ...(cursor && { cursor }),
        })
        const deals = await view.read<List<RecordRow>>(`/app/v1/objects/deals?${query}`)
        return { stage, deals, sums: (await sums)?.get(stage.name) ?? ((await sums) && []) }
      }),
    ),
  )
}

interface Sums {
  rows: { group: { stage: string | null }; currency?: string; value: string | number | null }[]
}

/** The amounts of all deals of each stage; undefined for a role that may not see analytics. */
async function sumsOf({ call, session }: View, { name, stages }: Pipeline) {
  const query = {
    metric: 'deals.value',
    group_by: ['stage'],
    filter: { pipeline: name },
    limit: stages.length,
  }
  // A query changes nothing: it needs no form.
  const headers = { 'x-csrf-token': session!.csrf_token }
  const answer = await call('POST', '/app/v1/analytics/query', query, headers)
  if (answer.status >= 400) return undefined
  const sums = new Map<string, string[]>()
  for (const { group, currency, value } of (answer.body as unknown as Sums).rows) {
    if (group.stage === null || value === null || Number(value) === 0) continue
    sums.set(group.stage, [...(sums.get(group.stage) ?? []), money(String(value), currency)])
  }
  return sums
}

function BoardColumn(props: {
  column: Column
  before: Stage | undefined
  after: Stage | undefined
  names: Map<string, string>
  mayMove: boolean
  query: URLSearchParams
}) {
  const { column, before, after, names, mayMove, query } = props
  const { stage, deals, sums } = column
  const id = `stage-${stage.name}`
  const name = `cursor_${stage.name}`
  return (
    <section class="board-column" aria-labelledby={id} data-stage={stage.name}>
      <header>
        <h2 id={id} title={stage.label}>
          {stage.label} <span class="muted">{deals.total?.toLocaleString('en')}</span>
        </h2>
        <p class="muted number">
          {sums?.length === 0 ? '–' : sums?.map((sum) => <span key={sum}>{sum}</span>)}
        </p>
      </header>
      <ul>
        {deals.data.map((deal) => (
          <li
            class="board-card"
            draggable={mayMove || undefined}
            data-deal={`${deal.id} ${deal.version}`}
            key={deal.id}
          >
            <DealCard deal={deal} names={names} />
            {mayMove && <Moves deal={deal} before={before} after={after} />}
          </li>
        ))}
      </ul>
      {deals.data.length === 0 && <p class="muted">No deal</p>}
      <nav class="actions" aria-label={`Pages of ${stage.label}`}>
        {query.has(name) && <a href={withQuery(query, { [name]: undefined })}>First</a>}
        {deals.next_cursor && <a href={withQuery(query, { [name]: deals.next_cursor })}>More</a>}
      </nav>
    </section>
  )
}

function DealCard({ deal, names }: { deal: RecordRow; names: Map<string, string> }) {
  const { amount, currency, company_id, expected_close_date: day } = deal
  const title = titleOf(deal)
  return (
    <>
      <a href={`/records/deals/${deal.id}`} dir="auto" title={title} draggable={false}>
        {title}
      </a>
      {typeof amount === 'string' && <span class="number">{money(amount, currency)}</span>}
      <span class="muted" dir="auto">
        {typeof company_id === 'string' && names.get(company_id)}
      </span>
      {typeof day === 'string' && <span class="muted">closes {day}</span>}
    </>
  )
}

/** To the stage before, to the one after, and a form with all of them. */
const Moves = ({
  deal,
  before,
  after,
}: {
  deal: RecordRow
  before: Stage | undefined
  after: Stage | undefined
}) => (
  <span class="moves">
    {[before, after].map(
      (stage, i) =>
        stage && (
          <button
            type="submit"
            form="move"
            name="move"
            value={`${deal.id} ${deal.version} ${stage.name}`}
            title={`Move to ${stage.label}`}
            key={stage.name}
          >
            <span aria-hidden="true">{i === 0 ? '←' : '→'}</span>
            <span class="hidden">{`Move ${titleOf(deal).slice(0, 80)} to ${stage.label}`}</span>
          </button>
        ),
    )}
    <a href={`/records/deals/${deal.id}/move`}>
      Move<span class="hidden">{` ${titleOf(deal).slice(0, 80)}`}</span>
    </a>
  </span>
)

function movePage(deal: RecordRow, { name, stages }: Pipeline): Page {
  const title = titleOf(deal)
  return {
    title: `Move ${title}`,
    content: (
      <>
        <PageHeader title="Move the deal" crumbs={[...CRUMBS, { href: BOARD, label: 'Board' }]} />
        <p>
          <Icon name="handshake" /> <strong dir="auto">{title}</strong>, in its stage since{' '}
          <Time at={String(deal.stage_changed_at)} />
        </p>
        <PostForm action={`${BOARD}?pipeline=${name}`} class="form" label={`Move ${title}`}>
          <div class="field">
            <label for="f-move">Stage</label>
            <select id="f-move" name="move">
              {stages.map((stage) => (
                <option
                  value={`${deal.id} ${deal.version} ${stage.name}`}
                  selected={stage.name === deal.stage}
                  key={stage.name}
                >
                  {stage.label}
                </option>
              ))}
            </select>
          </div>
          <div class="form-actions">
            <Button look="primary">Move it</Button>
            <LinkButton href={`${BOARD}?pipeline=${name}`}>Cancel</LinkButton>
          </div>
        </PostForm>
      </>
    ),
  }
}
