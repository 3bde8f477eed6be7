import type { ComponentChildren } from 'preact'
import { ActionButton, ConfirmButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Copyable, Json } from '../components/code.tsx'
import { Empty } from '../components/empty.tsx'
import { ChoiceFilter, Filters } from '../components/filters.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Status } from '../components/status.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Duration, Time } from '../components/time.tsx'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import type { RunSummary } from './run-list.tsx'
import { hasEnded, NodeRow, type RunError, type RunNode } from './run-nodes.tsx'

interface Run extends RunSummary {
  trigger: { type: string } & Record<string, unknown>
  inputs: Record<string, unknown>
  outputs: unknown
  error: RunError | null
  retry: { run_id: string; from_node: string | null } | null
  cancel_requested_at: string | null
  pause_requested_at: string | null
  waiting_for: string | null
  starts_at: string | null
  waits: Wait[]
  nodes: RunNode[]
}

interface Wait {
  path: string
  node_id: string
  type: string
  name: string | null
  events: string[] | null
  child_run_id: string | null
  approval: { id: string; title: string; message: string | null } | null
}

interface Iteration {
  path: string
  status: string
  item: unknown
  output: unknown
  error: RunError | null
  started_at: string
  duration_ms: number | null
}

const VERBS = ['cancel', 'pause', 'resume'] as const
const RUNS = { href: '/runs', label: 'Runs' }

export const runPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/runs/{run_id}',
    async handler({ read, params, query }) {
      const [path, node] = [query.get('path'), query.get('node')]
      return page(
        await read<Run>(`/app/v1/runs/${params.run_id}${path ? `?path=${encodeURIComponent(path)}` : ''}`),
        path,
        node,
      )
    },
  },
  {
    method: 'GET',
    path: '/runs/{run_id}/items',
    async handler(view) {
      const path = `/app/v1/runs/${view.params.run_id}/iterations`
      return itemsPage(view, await view.read<List<Iteration>>(pageOf(view, path, ['loop', 'status'])))
    },
  },
  ...VERBS.map(
    (verb): ConsoleRoute => ({
      method: 'POST',
      path: `/runs/{run_id}/${verb}`,
      async handler({ change, params }) {
        await change('POST', `/app/v1/runs/${params.run_id}/${verb}`)
        return { redirect: `/runs/${params.run_id}?done=changed` }
      },
    }),
  ),
  {
    method: 'POST',
    path: '/runs/{run_id}/retry',
    async handler({ change, params, form }) {
      const from = form.get('from_node')
      const body = {
        confirm: true,
        version: form.get('version') || 'same',
        ...(form.get('from_start') === 'true' && { from_start: true }),
        ...(from && { from_node: from }),
      }
      const { run_id } = await change<{ run_id: string }>('POST', `/app/v1/runs/${params.run_id}/retry`, body)
      return { redirect: `/runs/${run_id}?done=started` }
    },
  },
  {
    method: 'POST',
    path: '/runs/{run_id}/decide',
    async handler({ change, params, form }) {
      const comment = form.get('comment')
      await change('POST', `/app/v1/runs/${params.run_id}/signal`, {
        approval_id: form.get('approval_id'),
        decision: form.get('decision'),
        ...(comment && { comment }),
      })
      return { redirect: `/runs/${params.run_id}?done=changed` }
    },
  },
]

function page(run: Run, path: string | null, chosen: string | null): Page {
  const here = `/runs/${run.run_id}`
  return {
    title: `${run.workflow_name}: ${run.status}`,
    content: (
      <div class="stack" data-live={hasEnded(run) ? undefined : `/app/v1/runs/${run.run_id}/stream`}>
        <PageHeader
          title={
            <span dir="auto">
              {run.workflow_name} <Status of={run.status} />
            </span>
          }
          crumbs={path ? [RUNS, { href: here, label: run.workflow_name }] : [RUNS]}
        >
          <RunActions run={run} />
        </PageHeader>
        <Happened run={run} />
        {run.waits.map((wait) => (
          <WaitOf key={`${wait.path} ${wait.node_id}`} wait={wait} here={here} />
        ))}
        <div class="columns">
          <div class="stack">
            <Card title={path ? `Nodes of ${path}` : 'Nodes'} flush>
              {run.nodes.length === 0 && <p class="muted">No node has started.</p>}
              <div class="rows">
                {run.nodes.map((node) => (
                  <NodeRow
                    key={`${node.path} ${node.node_id}`}
                    node={node}
                    run={run}
                    isChosen={chosen === node.node_id}
                  />
                ))}
              </div>
            </Card>
          </div>
          <div class="stack">
            <RunFacts run={run} />
            <Card title="Input">
              <Json value={{ trigger: run.trigger, inputs: run.inputs }} label="the input" />
            </Card>
            {run.outputs !== null && (
              <Card title="Output">
                <Json value={run.outputs} label="the output" />
              </Card>
            )}
          </div>
        </div>
      </div>
    ),
  }
}

/** What happened, in one line. */
function Happened({ run }: { run: Run }) {
  const { error, stuck_reason, cancel_requested_at, pause_requested_at, waiting_for, starts_at, status } = run
  return (
    <>
      {error && (
        <div class="notice red">
          <Icon name="circle-x" /> {error.node_id && <strong>{error.node_id}: </strong>}
          {error.message} <code>{error.code}</code>
          {error.details !== undefined && <Json value={error.details} label="the details of the error" />}
        </div>
      )}
      {stuck_reason && <Note>The run makes no progress: {stuck_reason}</Note>}
      {cancel_requested_at && !hasEnded(run) && (
        <Note>It was asked to end, and ends when its nodes have.</Note>
      )}
      {pause_requested_at && status === 'running' && (
        <Note>It pauses as soon as no attempt is in progress.</Note>
      )}
      {waiting_for && !hasEnded(run) && (
        <Note>
          It waits for {waiting_for.replace('_', ' ')}
          {starts_at && (
            <>
              {' '}
              until <Time at={starts_at} absolute />
            </>
          )}
          .
        </Note>
      )}
    </>
  )
}

const Note = ({ children }: { children: ComponentChildren }) => (
  <p class="notice amber">
    <Icon name="clock" /> {children}
  </p>
)

function WaitOf({ wait, here }: { wait: Wait; here: string }) {
  const { approval, type, node_id, name, events, child_run_id } = wait
  if (approval)
    return (
      <Card title={`Approval: ${approval.title}`}>
        {approval.message && <p dir="auto">{approval.message}</p>}
        <PostForm action={`${here}/decide`} class="form" label="Decide">
          <input type="hidden" name="approval_id" value={approval.id} />
          <div class="field">
            <label for={`comment-${approval.id}`}>Comment</label>
            <input id={`comment-${approval.id}`} name="comment" type="text" dir="auto" />
          </div>
          <div class="form-actions">
            <button type="submit" class="button primary" name="decision" value="approved">
              Approve
            </button>
            <button type="submit" class="button danger" name="decision" value="rejected">
              Reject
            </button>
          </div>
        </PostForm>
      </Card>
    )
  const what = name ?? events?.join(', ')
  return (
    <Note>
      <strong>{node_id}</strong> waits for {type} {what}
      {child_run_id && <a href={`/runs/${child_run_id}`}>its run</a>}
    </Note>
  )
}

function RunActions({ run }: { run: Run }) {
  const here = `/runs/${run.run_id}`
  if (hasEnded(run))
    return (
      <>
        {run.status !== 'completed' && (
          <ActionButton action={`${here}/retry`} look="primary">
            Retry
          </ActionButton>
        )}
        <ConfirmButton
          action={`${here}/retry`}
          fields={{ from_start: 'true', version: 'latest' }}
          question="Starts a new run with the same input on the newest version of the workflow. Calls keep their idempotency keys."
          confirm="Run again"
        >
          Run again from the start
        </ConfirmButton>
      </>
    )
  return (
    <>
      {run.status === 'paused' || run.pause_requested_at ? (
        <ActionButton action={`${here}/resume`} look="primary">
          Resume
        </ActionButton>
      ) : (
        <ActionButton action={`${here}/pause`} icon="pause">
          Pause
        </ActionButton>
      )}
      <ConfirmButton
        action={`${here}/cancel`}
        question="Its nodes are cancelled. What they did already remains, except for nodes with an undo."
        confirm="Cancel the run"
        look="danger"
      >
        Cancel
      </ConfirmButton>
    </>
  )
}

function RunFacts({ run }: { run: Run }) {
  const rows: [string, ComponentChildren][] = [
    [
      'Workflow',
      <a href={`/workflows/${run.workflow_id}`} key="workflow">{`version ${run.workflow_version}`}</a>,
    ],
    ['Started by', run.trigger.type],
    ['Created', <Time at={run.created_at} absolute key="created" />],
    ['Ended', run.ended_at && <Time at={run.ended_at} absolute />],
    ['Took', <Duration ms={run.duration_ms} key="took" />],
    ['Retry of', run.retry && <a href={`/runs/${run.retry.run_id}`}>a run</a>],
    ['Parent', run.parent_run_id && <a href={`/runs/${run.parent_run_id}`}>a run</a>],
    ['Id', <Copyable text={run.run_id} label="the id" key="id" />],
    [
      'Temporal',
      run.links.temporal_ui && (
        <a href={run.links.temporal_ui} rel="noreferrer noopener" target="_blank">
          Open its history
        </a>
      ),
    ],
  ]
  return (
    <Card title="Run">
      <Facts of={rows.filter(([, value]) => value)} />
    </Card>
  )
}

function itemsPage(view: View, items: List<Iteration>): Page {
  const { run_id } = view.params
  const loop = view.query.get('loop') ?? ''
  return {
    title: `Items of ${loop}`,
    content: (
      <>
        <PageHeader title={`Items of ${loop}`} crumbs={[RUNS, { href: `/runs/${run_id}`, label: 'Run' }]} />
        <Filters keep={['loop']}>
          <ChoiceFilter name="status" choices={['running', 'completed', 'failed', 'cancelled']} />
        </Filters>
        {items.data.length === 0 ? (
          <Empty icon="search" title="No item matches" />
        ) : (
          <>
            <Table
              label="Items"
              rows={items.data}
              keyOf={({ path }) => path}
              columns={[
                {
                  title: 'Item',
                  cell: ({ path }) => <a href={`/runs/${run_id}?path=${encodeURIComponent(path)}`}>{path}</a>,
                },
                { title: 'Status', cell: ({ status }) => <Status of={status} /> },
                { title: 'Value', cell: ({ item }) => <code>{JSON.stringify(item)?.slice(0, 200)}</code> },
                { title: 'Error', cell: ({ error }) => error?.message },
                { title: 'Took', align: 'right', cell: ({ duration_ms }) => <Duration ms={duration_ms} /> },
              ]}
            />
            <Paging list={items} />
          </>
        )}
      </>
    ),
  }
}
