import { RUN_TRIGGERS } from '../../../workflows/interpret/run-state.ts'
import { RUN_STATUSES } from '../../../workflows/shared/statuses.ts'
import { LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { ChoiceFilter, DateFilter, Filters, SearchFilter } from '../components/filters.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Status } from '../components/status.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Duration, Time } from '../components/time.tsx'
import { errorsOf } from '../forms/errors.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

export interface RunSummary {
  run_id: string
  workflow_id: string
  workflow_name: string
  workflow_version: number
  status: string
  trigger: { type: string }
  record_id: string | null
  parent_run_id: string | null
  retry_of: string | null
  stuck_reason: string | null
  late_at: string | null
  created_at: string
  started_at: string | null
  ended_at: string | null
  duration_ms: number | null
  links: { temporal_ui?: string }
}

const FILTERS = [
  'status',
  'workflow_id',
  'trigger',
  'q',
  'from',
  'to',
  'record_id',
  'parent_run_id',
  'retry_of',
  'late',
]

export const runListPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/runs',
    async handler(view) {
      const [workflows, answer] = await Promise.all([
        view.read<List<{ workflow_id: string; name: string }>>('/app/v1/workflows?limit=200'),
        view.call('GET', pageOf(view, '/app/v1/runs', FILTERS)),
      ])
      const options = workflows.data.map(({ workflow_id, name }) => ({ id: workflow_id, name }))
      if (answer.status < 400) return page(view, options, answer.body as unknown as List<RunSummary>)
      return page(view, options, undefined, answer)
    },
  },
]

type Options = { id: string; name: string }[]

function page(
  { query }: View,
  workflows: Options,
  runs: List<RunSummary> | undefined,
  refusal?: { status: number; body: Record<string, unknown> },
): Page {
  return {
    title: 'Runs',
    status: refusal?.status ?? 200,
    content: (
      <>
        <PageHeader
          title="Runs"
          about="Every start of a workflow, with what came in and what became of it."
        />
        <Filters>
          <SearchFilter label="Workflow or error" min={3} />
          <ChoiceFilter name="status" choices={RUN_STATUSES} />
          <ChoiceFilter name="workflow_id" choices={workflows} label="Workflow" />
          <ChoiceFilter name="trigger" choices={RUN_TRIGGERS} />
          <DateFilter name="from" label="From (UTC)" />
          <DateFilter name="to" label="To (UTC)" />
        </Filters>
        {refusal && (
          <p class="notice red" role="alert">
            {errorsOf(refusal, []).others.join('. ')}
          </p>
        )}
        {runs && runs.data.length > 0 && <Runs runs={runs} />}
        {runs && runs.data.length === 0 && <Nothing isFiltered={FILTERS.some((name) => query.get(name))} />}
      </>
    ),
  }
}

const Nothing = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <Empty icon="search" title="No run matches">
      <LinkButton href="/runs">Show all</LinkButton>
    </Empty>
  ) : (
    <Empty icon="play" title="No run yet">
      <p>A run begins when the trigger of an active workflow fires, or when somebody starts it.</p>
      <LinkButton href="/workflows" look="primary">
        Go to the workflows
      </LinkButton>
    </Empty>
  )

const Runs = ({ runs }: { runs: List<RunSummary> }) => (
  <>
    <Table
      label="Runs"
      rows={runs.data}
      keyOf={({ run_id }) => run_id}
      columns={[
        {
          title: 'Workflow',
          cell: ({ run_id, workflow_name: name }) => (
            <a href={`/runs/${run_id}`} dir="auto" title={name}>
              {name}
            </a>
          ),
        },
        { title: 'Status', cell: ({ status }) => <Status of={status} /> },
        {
          title: 'Note',
          cell: ({ stuck_reason, late_at, retry_of }) =>
            stuck_reason ?? (late_at ? 'late' : retry_of ? 'a retry' : ''),
        },
        { title: 'Started by', cell: ({ trigger }) => trigger.type },
        { title: 'Version', align: 'right', cell: ({ workflow_version }) => workflow_version },
        { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
        { title: 'Took', align: 'right', cell: ({ duration_ms }) => <Duration ms={duration_ms} /> },
        { title: 'Id', cell: ({ run_id }) => <code>{run_id.slice(-8)}</code> },
      ]}
    />
    <Paging list={runs} />
  </>
)
