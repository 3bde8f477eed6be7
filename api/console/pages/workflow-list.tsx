import { ROLE_SCOPES } from '../../../db/model/access/roles.ts'
import { WORKFLOW_STATUSES } from '../../../db/workflows/workflows.ts'
import { allows } from '../../http/scopes.ts'
import { LinkButton } from '../components/button.tsx'
import { Empty } from '../components/empty.tsx'
import { ChoiceFilter, Filters, SearchFilter } from '../components/filters.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Status } from '../components/status.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

export interface WorkflowSummary {
  workflow_id: string
  name: string
  description: string | null
  status: string
  version: number
  active_version: number | null
  trigger: { type?: string }
  updated_at: string
}

export const mayAuthor = ({ session }: View) => allows(ROLE_SCOPES[session!.role], 'workflows:author')

export const workflowListPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/workflows',
    handler: async (view) =>
      listPage(
        view,
        await view.read<List<WorkflowSummary>>(pageOf(view, '/app/v1/workflows', ['q', 'status'])),
      ),
  },
]

function listPage(view: View, workflows: List<WorkflowSummary>): Page {
  const add = mayAuthor(view) && (
    <>
      <LinkButton href="/workflows/nodes">Nodes</LinkButton>
      <LinkButton href="/workflows/templates">Templates</LinkButton>
      <LinkButton href="/workflows/new" look="primary" icon="plus">
        New workflow
      </LinkButton>
    </>
  )
  const isFiltered = view.query.get('q') || view.query.get('status')
  return {
    title: 'Workflows',
    content: (
      <>
        <PageHeader
          title="Workflows"
          about="What happens by itself: on an event, a request, a schedule, or when started."
        >
          {add}
        </PageHeader>
        <Filters>
          <SearchFilter label="Name or description" />
          <ChoiceFilter name="status" choices={WORKFLOW_STATUSES} />
        </Filters>
        {workflows.data.length === 0 && isFiltered && <Empty icon="search" title="No workflow matches" />}
        {workflows.data.length === 0 && !isFiltered && (
          <Empty icon="workflow" title="No workflow yet">
            <p>
              Written in YAML, checked as you save. <a href="/docs/workflows">Read more</a>, or begin with a
              template.
            </p>
            <div class="actions">{add}</div>
          </Empty>
        )}
        {workflows.data.length > 0 && <Workflows workflows={workflows} />}
      </>
    ),
  }
}

const Workflows = ({ workflows }: { workflows: List<WorkflowSummary> }) => (
  <>
    <Table
      label="Workflows"
      rows={workflows.data}
      keyOf={({ workflow_id }) => workflow_id}
      columns={[
        {
          title: 'Name',
          cell: ({ workflow_id, name }) => (
            <a href={`/workflows/${workflow_id}`} dir="auto" title={name}>
              {name}
            </a>
          ),
        },
        { title: 'Status', cell: ({ status }) => <Status of={status} /> },
        { title: 'Trigger', cell: ({ trigger }) => trigger.type },
        { title: 'Version', align: 'right', cell: ({ version }) => version },
        { title: 'Active version', align: 'right', cell: ({ active_version }) => active_version },
        { title: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
        { title: '', cell: ({ workflow_id }) => <a href={`/runs?workflow_id=${workflow_id}`}>Runs</a> },
      ]}
    />
    <Paging list={workflows} />
  </>
)
