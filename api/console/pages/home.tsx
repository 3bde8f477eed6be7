import { includesRole } from '../../../db/model/access/roles.ts'
import { LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Code } from '../components/code.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Status } from '../components/status.tsx'
import { Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import type { ConsoleRoute, List, View } from '../route.ts'

interface Run {
  run_id: string
  workflow_name: string
  status: string
  created_at: string
}

interface Task {
  id: string
  title: string
  due_at: string | null
  priority: string | null
}

interface Endpoint {
  id: string
  name: string
  status: string
  status_reason: string | null
  failing_since: string | null
}

interface Step {
  title: string
  isDone: boolean
  href: string
  action: string
  curl?: string
}

/** What needs me, what happened, and on the first morning what to do first. */
export const homeRoutes: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/',
    async handler(view) {
      const { read, session } = view
      const now = Date.now()
      const since = new Date(now - 86_400_000).toISOString()
      const [failed, latest, tasks, endpoints, steps] = await Promise.all([
        read<List<Run>>(`/app/v1/runs?status=failed,lost&limit=5&from=${since}`),
        read<List<Run>>('/app/v1/runs?limit=8&count=none'),
        read<List<Task>>(
          `/app/v1/objects/tasks?assignee_id=${session!.user_id}&status[nin]=done,cancelled&sort=due_at&order=asc&limit=5`,
        ),
        read<List<Endpoint>>('/app/webhooks/outgoing?limit=200'),
        firstSteps(view),
      ])
      const broken = endpoints.data.filter((one) => one.status_reason ?? one.failing_since)
      const isCalm = failed.data.length + broken.length + tasks.data.length === 0
      return {
        title: 'Home',
        content: (
          <>
            <PageHeader title="Home" />
            {steps.some(({ isDone }) => !isDone) && <Checklist steps={steps} />}
            <div class="columns">
              <div class="stack">
                {isCalm && (
                  <Card title="Needs you">
                    <p class="muted">
                      Nothing: no failed run since yesterday, no failing webhook, no task of yours.
                    </p>
                  </Card>
                )}
                {failed.data.length > 0 && (
                  <Runs title="Failed since yesterday" runs={failed.data} more="/runs?status=failed" />
                )}
                {broken.length > 0 && <Endpoints endpoints={broken} />}
                {tasks.data.length > 0 && <Tasks tasks={tasks.data} />}
              </div>
              <Runs title="Latest runs" runs={latest.data} more="/runs" />
            </div>
          </>
        ),
      }
    },
  },
]

/** The steps of the first morning, each done or not by what is stored. Keys are for owners and admins. */
async function firstSteps({ read, session, baseUrl }: View): Promise<Step[]> {
  if (!includesRole(session!.role, 'admin')) return []
  const [keys, incoming, workflows, runs] = await Promise.all([
    read<List<{ last_used_at: string | null }>>('/app/keys?limit=50'),
    read<List<object>>('/app/webhooks/incoming?limit=1'),
    read<List<object>>('/app/v1/workflows?limit=1'),
    read<List<object>>('/app/v1/runs?limit=1&count=none'),
  ])
  const curl = `curl ${baseUrl}/v1/me -H "Authorization: Bearer $KEY"`
  return [
    {
      title: 'Make an API key',
      isDone: keys.data.length > 0,
      href: '/settings/keys/new',
      action: 'Make a key',
    },
    {
      title: 'Send the first request with it',
      isDone: keys.data.some(({ last_used_at }) => last_used_at !== null),
      href: '/docs',
      action: 'See the API',
      curl,
    },
    {
      title: 'Receive data from a form or another service',
      isDone: incoming.data.length > 0,
      href: '/settings/webhooks/incoming/new',
      action: 'Make an incoming webhook',
    },
    {
      title: 'Make a workflow',
      isDone: workflows.data.length > 0,
      href: '/workflows/new',
      action: 'Write one',
    },
    { title: 'Run it', isDone: runs.data.length > 0, href: '/workflows', action: 'See the workflows' },
  ]
}

function Checklist({ steps }: { steps: Step[] }) {
  const done = steps.filter(({ isDone }) => isDone).length
  return (
    <Card title="First steps" actions={<span class="muted">{`${done} of ${steps.length}`}</span>}>
      <ol class="checklist">
        {steps.map(({ title, isDone, href, action, curl }) => (
          <li key={title} class={isDone ? 'done' : ''}>
            <Icon name={isDone ? 'circle-check' : 'circle-dashed'} />
            <div>
              <strong>
                {title}
                {isDone && <span class="hidden"> (done)</span>}
              </strong>
              {!isDone && curl && <Code text={curl} label="the request" />}
            </div>
            {!isDone && <LinkButton href={href}>{action}</LinkButton>}
          </li>
        ))}
      </ol>
    </Card>
  )
}

function Runs({ title, runs, more }: { title: string; runs: Run[]; more: string }) {
  return (
    <Card title={title} actions={<a href={more}>All runs</a>} flush>
      {runs.length === 0 ? (
        <p class="muted">No run yet.</p>
      ) : (
        <Table
          label={title}
          rows={runs}
          keyOf={({ run_id }) => run_id}
          columns={[
            { title: 'Workflow', cell: (run) => <a href={`/runs/${run.run_id}`}>{run.workflow_name}</a> },
            { title: 'Status', cell: ({ status }) => <Status of={status} /> },
            { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
          ]}
        />
      )}
    </Card>
  )
}

const Endpoints = ({ endpoints }: { endpoints: Endpoint[] }) => (
  <Card title="Failing webhooks" flush>
    <Table
      label="Failing webhooks"
      rows={endpoints}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Name', cell: ({ id, name }) => <a href={`/settings/webhooks/outgoing/${id}`}>{name}</a> },
        { title: 'Status', cell: ({ status }) => <Status of={status === 'Active' ? 'failing' : status} /> },
        {
          title: 'Why',
          cell: (one) =>
            one.status_reason ?? (
              <>
                no success since <Time at={one.failing_since} />
              </>
            ),
        },
      ]}
    />
  </Card>
)

const Tasks = ({ tasks }: { tasks: Task[] }) => (
  <Card title="Your tasks" actions={<a href="/records/tasks">All tasks</a>} flush>
    <Table
      label="Your tasks"
      rows={tasks}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Task', cell: ({ id, title }) => <a href={`/records/tasks/${id}`}>{title}</a> },
        { title: 'Priority', cell: ({ priority }) => priority ?? '' },
        {
          title: 'Due',
          cell: ({ due_at }) => (due_at ? <Time at={due_at} /> : <span class="muted">no date</span>),
        },
      ]}
    />
  </Card>
)
