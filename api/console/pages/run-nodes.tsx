import { RUN_END_STATUSES } from '../../../workflows/shared/statuses.ts'
import { ActionButton } from '../components/button.tsx'
import { Json } from '../components/code.tsx'
import { Icon } from '../components/icon.tsx'
import { Status } from '../components/status.tsx'
import { withQuery } from '../components/table.tsx'
import { Duration, Time } from '../components/time.tsx'
import { usePage } from '../context.ts'

/** The nodes of a run, on its page. */

export interface RunError {
  code: string
  message: string
  node_id?: string
  details?: unknown
}

export interface RunNode {
  path: string
  node_id: string
  node_type: string
  title: string
  status: string
  attempt: number
  next_attempt_at: string | null
  input: unknown
  output: unknown
  handle: string | null
  error: RunError | null
  wait_until: string | null
  started_at: string
  duration_ms: number | null
  loop: { loop: string; count: number; started: number; succeeded: number; failed: number } | null
  role: string | null
  attempts: NodeAttempt[]
}

interface NodeAttempt {
  number: number
  started_at: string
  duration_ms: number | null
  in_progress: boolean
  response_status: number | null
  error: RunError | null
}

/** What a row of a node needs of its run. */
interface RunOfNodes {
  run_id: string
  status: string
  nodes: RunNode[]
}

export const hasEnded = ({ status }: { status: string }) => RUN_END_STATUSES.some((end) => end === status)

/** With more nodes, only the failed ones and the chosen one show their values: a page must not become megabytes. */
const MANY_NODES = 40

/** A node with its error, attempts and values, as far as they are shown. */
export function NodeRow({ node, run, isChosen }: { node: RunNode; run: RunOfNodes; isChosen: boolean }) {
  const { loop, error, status } = node
  const { query } = usePage().view
  const isWhole = run.nodes.length <= MANY_NODES || error !== null || isChosen
  const id = `node-${node.path}-${node.node_id}`
  return (
    <details id={id} open={error !== null || isChosen}>
      <summary>
        <Icon name="chevron-right" />
        <span class="grow" title={node.title}>
          <strong>{node.title}</strong> <span class="muted">{node.node_type}</span>
        </span>
        {node.attempt > 1 && <span class="muted">attempt {node.attempt}</span>}
        {loop && <span class="muted">{`${loop.succeeded + loop.failed} of ${loop.count}`}</span>}
        <Status of={status} />
        <Duration ms={node.duration_ms} />
      </summary>
      <div class="inside">
        {error && (
          <div class="notice red">
            {error.message} <code>{error.code}</code>
            {error.details !== undefined && <Json value={error.details} label="the details of the error" />}
          </div>
        )}
        <p class="muted">
          Started <Time at={node.started_at} absolute />
          {node.wait_until && (
            <>
              , waits until <Time at={node.wait_until} absolute />
            </>
          )}
          {node.next_attempt_at && (
            <>
              , next attempt <Time at={node.next_attempt_at} />
            </>
          )}
          {node.handle && `, went on at ${node.handle}`}
        </p>
        {node.attempts.length > 1 && <Attempts of={node.attempts} />}
        {loop && (
          <p>
            <a href={`/runs/${run.run_id}/items?loop=${encodeURIComponent(loop.loop)}`}>
              {loop.started} items
            </a>
            , {loop.failed} failed
          </p>
        )}
        {isWhole ? (
          <div class="side-by-side">
            <div>
              <h3>Input</h3>
              <Json value={node.input} label={`the input of ${node.node_id}`} />
            </div>
            <div>
              <h3>Output</h3>
              <Json value={node.output} label={`the output of ${node.node_id}`} />
            </div>
          </div>
        ) : (
          <p>
            <a href={`${withQuery(query, { node: node.node_id })}#${id}`}>Show its input and output</a>
          </p>
        )}
        {hasEnded(run) && node.path === '' && node.role === null && (
          <div>
            <ActionButton action={`/runs/${run.run_id}/retry`} fields={{ from_node: node.node_id }}>
              Retry from here
            </ActionButton>
          </div>
        )}
      </div>
    </details>
  )
}

/** The attempts of a call, with the answer to each. */
const Attempts = ({ of }: { of: NodeAttempt[] }) => (
  <ul>
    {of.map(({ number, started_at, duration_ms, in_progress, response_status, error }) => (
      <li key={started_at}>
        Attempt {number}, <Time at={started_at} absolute />: {in_progress && 'in progress'}
        {error ? error.message : !in_progress && 'succeeded'}{' '}
        {response_status && <code>{response_status}</code>} <Duration ms={duration_ms} />
      </li>
    ))}
  </ul>
)
