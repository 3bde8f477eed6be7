import { z } from 'zod'
import { AppError } from '../../db/model/errors.ts'
import { isOpenRun } from '../../db/model/runs/statuses.ts'
import { hideApprovalLinks } from '../../db/process/approval-links.ts'
import {
  BEFORE_ALL,
  type ChangedNode,
  getProgress,
  type RunProgress,
  watchRun,
} from '../../db/runs/progress.ts'
import { durationOf } from '../../db/runs/views.ts'
import { type EventStream, type Route, type RouteRequest, route } from '../http/route.ts'

/** Lifetime of a stream. The client then connects and is authorized again. */
const LIFETIME_MS = 5 * 60_000
/** Time after the lifetime until a client that does not read is disconnected. */
const GRACE_MS = 10_000
/** Interval of heartbeats: proxies close connections that are silent for a minute. */
const HEARTBEAT_MS = 15_000
/** Interval of renewing the subscription to a run's notifications, which expires after 30 seconds. */
const WATCH_MS = 20_000
/** Time until a disconnected client reconnects, in milliseconds. */
const RETRY_MS = 2_000

/** Greater than every segment number, so that no node has changed since. */
const AFTER_ALL = 2 ** 31 - 1

export const runStreamRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/runs/{run_id}/stream',
    scope: 'workflows:run',
    id: 'streamRun',
    tag: 'Runs',
    summary: 'Follow a run',
    description: `Server-sent events. \`run\`: the status of the run, at the start and when it changes. \`node\`: a node that has
started, waits or has ended, without its input and output. \`end\`: the run with its outputs and error, then the stream ends;
the client must close it. With \`Last-Event-ID\` the stream continues after that event. A stream ends after ${LIFETIME_MS / 60_000} minutes at the
latest, and when the server stops: connect again. Each API process allows 10 streams of a key and 50 of an organization.`,
    params: z.object({ run_id: z.uuid() }),
    response: { status: 200, stream: 'text/event-stream' },
    handler: async (request): Promise<EventStream> => {
      const { params, headers, deps, caller, tenant } = request
      const after = lastSegment(headers['last-event-id'])
      // An unknown run gets 404, not an empty stream.
      await tenant((tx) => getProgress(tx, params.run_id, AFTER_ALL))
      const close = deps.streams.take(caller.id, caller.organization.id)
      return { events: follow(request, params.run_id, after), close, lifetimeMs: LIFETIME_MS + GRACE_MS }
    },
  }),
]

/** Throws `invalid_request`. */
function lastSegment(id: string | string[] | undefined): number {
  if (id === undefined || id === '') return BEFORE_ALL
  if (typeof id === 'string' && /^-?\d{1,9}$/.test(id)) return Number(id)
  throw new AppError('invalid_request', 'Last-Event-ID is not an event id of this stream', {
    param: 'Last-Event-ID',
    hint: 'send the id of the last event that you received, or omit the header',
  })
}

async function* follow(
  { deps, signal, tenant }: Pick<RouteRequest, 'deps' | 'signal' | 'tenant'>,
  runId: string,
  from: number,
): AsyncGenerator<string> {
  const stopped = AbortSignal.any([signal, deps.stopping])
  const until = Date.now() + LIFETIME_MS
  let after = from
  let shown: string | undefined
  let watchedAt = 0
  /** The progress since the last read. Undefined if nothing has changed. */
  const read = async (): Promise<RunProgress | undefined> => {
    if (Date.now() - watchedAt > WATCH_MS) {
      watchedAt = Date.now()
      await tenant((tx) => watchRun(tx, runId))
    }
    const progress = await tenant((tx) => getProgress(tx, runId, after))
    const changed =
      progress.nodes.length > 0 || stateOf(progress) !== shown || !isOpenRun(progress.run.status)
    return changed ? progress : undefined
  }
  yield `retry: ${RETRY_MS}\n\n`
  let progress = await read()
  while (!stopped.aborted) {
    if (!progress) yield ': heartbeat\n\n'
    else {
      const state = stateOf(progress)
      if (state !== shown) yield event('run', state)
      shown = state
      yield* nodeEvents(progress.nodes)
      after = progress.nodes.at(-1)?.segment ?? after
      if (progress.nodes.length === 0 && !isOpenRun(progress.run.status)) {
        yield event('end', hideApprovalLinks(JSON.stringify(presentRun(progress, true))))
        return
      }
    }
    const left = until - Date.now()
    if (left <= 0) return
    progress =
      progress && progress.nodes.length > 0
        ? await read()
        : await deps.runEnds.wait(runId, Math.min(HEARTBEAT_MS, left), stopped, read)
  }
}

/** Only the last event of a segment has an id: a client that resumes after it has received the whole segment. */
function* nodeEvents(nodes: ChangedNode[]): Generator<string> {
  for (const [i, { segment, position: _, ...node }] of nodes.entries()) {
    const isLast = nodes[i + 1]?.segment !== segment
    const data = JSON.stringify({ object: 'run_node', ...node, duration_ms: durationOf(node) })
    yield event('node', data, isLast ? segment : undefined)
  }
}

const stateOf = (progress: RunProgress): string => JSON.stringify(presentRun(progress, false))

function presentRun({ run }: RunProgress, whole: boolean) {
  const { id, outputs, error, ...rest } = run
  return {
    object: 'run',
    run_id: id,
    ...rest,
    duration_ms: durationOf(run),
    ...(whole ? { outputs, error } : {}),
  }
}

/** An event of the stream. JSON has no line breaks. */
const event = (name: string, data: string, id?: number): string =>
  `event: ${name}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`
