import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Database } from '../postgres/connect.ts'
import { type Build, buildOf } from './build.ts'
import type { LogOutput } from './log-output.ts'
import { registerPools, registerQueues } from './queue-metrics.ts'

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The metrics of a process. Labels are bounded: neither ids nor names that tenants choose. */
export type Metrics = ReturnType<typeof createMetrics>

interface MetricsDeps {
  db: Database
  log: LogOutput
  /** Whether it reads the figures of the queues from PostgreSQL, which only the worker does. */
  queues: boolean
  build?: Build
  /** The number of calls that wait for a worker of a pool, if it is known. */
  poolBacklog?: (pool: string) => Promise<number | undefined>
  /** The use of the worker's slots for calls. */
  callSlots?: () => { held: number; waiting: number; refused: number }
}

/** The definitions of all metrics; api and worker fill in their own. */
export function createMetrics({ db, log, queues, build = buildOf({}), poolBacklog, callSlots }: MetricsDeps) {
  const registry = new Registry()
  const registers = [registry]
  registerConnections(db, registers)
  registerLog(log, registers)
  registerBuild(build, registers)
  registerEndedRuns(db, registers)
  if (queues) registerQueues(db, registers)
  if (poolBacklog) registerPools(db, poolBacklog, registers)
  if (callSlots) registerSlots(callSlots, registers)
  return {
    ...filledMetrics(registers),
    /** Adds the metrics of the process itself: CPU, memory, event-loop delay, garbage collection. */
    collectProcess: () => collectDefaultMetrics({ register: registry }),
    text: () => registry.metrics(),
    /** The names and labels of the metrics that are defined. */
    definitions: () => registry.getMetricsAsArray().map(definitionOf),
  }
}

/** The metrics that the code of api and worker fills in where something happens. */
function filledMetrics(registers: Registry[]) {
  return {
    httpRequests: new Histogram({
      name: 'agx_http_request_duration_seconds',
      help: 'Requests to the API, by route.',
      registers,
      labelNames: ['method', 'route', 'status'] as const,
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    }),
    deliveryAttempts: new Counter({
      name: 'agx_delivery_attempts_total',
      help: 'Attempts of deliveries, by outcome.',
      registers,
      labelNames: ['outcome'] as const,
    }),
    runsSkipped: new Counter({
      name: 'agx_runs_skipped_total',
      help: 'Runs of events that were not started because there were too many, by the code of their error.',
      registers,
      labelNames: ['code'] as const,
    }),
    temporalLosses: new Counter({
      name: 'agx_temporal_losses_total',
      help: 'Losses of Temporal that were noticed: it was restored to an earlier moment, or emptied.',
      registers,
    }),
    lastSweep: new Gauge({
      name: 'agx_sweep_last_timestamp_seconds',
      help: 'When this worker last ended a sweep; 0: never. One worker at a time sweeps: use max.',
      registers,
    }),
    sweepFailures: new Counter({
      name: 'agx_sweep_failures_total',
      help: 'Stages of the sweep that failed.',
      registers,
      labelNames: ['stage'] as const,
    }),
    webhooksDeactivated: new Counter({
      name: 'agx_webhooks_deactivated_total',
      help: 'Outgoing webhooks that were made Inactive, because their receivers failed for long or answered 410.',
      registers,
    }),
    mails: new Counter({
      name: 'agx_mails_total',
      help: 'Attempts of mails of accounts and approvals, by queue and outcome.',
      registers,
      labelNames: ['mails', 'outcome'] as const,
    }),
    incomingRequests: new Counter({
      name: 'agx_incoming_requests_total',
      help: 'Requests to incoming webhooks: accepted, or the code of the refusal.',
      registers,
      labelNames: ['outcome'] as const,
    }),
    threadTasks: new Counter({
      name: 'agx_thread_tasks_total',
      help: 'Computations of tenants that a thread was given, by task.',
      registers,
      labelNames: ['task'] as const,
    }),
    embeddingRequests: new Counter({
      name: 'agx_embedding_requests_total',
      help: 'Requests to endpoints that make embeddings, of passages and of queries.',
      registers,
    }),
    activities: new Histogram({
      name: 'agx_activity_duration_seconds',
      help: 'Activities, by type and outcome.',
      registers,
      labelNames: ['type', 'outcome'] as const,
      buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300],
    }),
  }
}

function registerConnections(db: Database, registers: Registry[]): void {
  new Gauge({
    name: 'agx_db_connections',
    help: 'Connections of each pool, and callers that wait for one.',
    registers,
    labelNames: ['pool', 'state'],
    collect() {
      for (const [pool, { used, idle, waiting }] of Object.entries(db.poolUse()))
        for (const [state, count] of Object.entries({ used, idle, waiting })) this.set({ pool, state }, count)
    },
  })
}

function registerLog(log: LogOutput, registers: Registry[]): void {
  new Counter({
    name: 'agx_log_lines_dropped_total',
    help: 'Log lines that could not be written.',
    registers,
    collect() {
      this.reset()
      this.inc(log.dropped)
    },
  })
}

function registerBuild({ version, commit = '' }: Build, registers: Registry[]): void {
  new Gauge({
    name: 'agx_build_info',
    help: 'Always 1; the labels name what runs.',
    registers,
    labelNames: ['version', 'commit', 'node'],
  }).set({ version, commit, node: process.version }, 1)
}

function registerEndedRuns(db: Database, registers: Registry[]): void {
  const runsEnded = new Counter({
    name: 'agx_runs_ended_total',
    help: 'Runs that ended, by end status.',
    registers,
    labelNames: ['status'] as const,
  })
  db.onEnd(({ work, status }) => {
    if (work === 'run') runsEnded.inc({ status })
  })
}

interface Definition {
  name: string
  type: string
  labels: string[]
}

/** The registry's own types lack the labels. */
function definitionOf(metric: object): Definition {
  const { name, type, labelNames } = metric as { name: string; type: string; labelNames?: string[] }
  return { name, type, labels: [...(labelNames ?? [])] }
}

function registerSlots(
  use: () => { held: number; waiting: number; refused: number },
  registers: Registry[],
): void {
  new Gauge({
    name: 'agx_call_slots',
    help: 'Slots for calls of other services that are held, and calls that wait in the worker for one.',
    registers,
    labelNames: ['state'],
    collect() {
      const { held, waiting } = use()
      this.set({ state: 'held' }, held)
      this.set({ state: 'waiting' }, waiting)
    },
  })
  new Counter({
    name: 'agx_calls_without_slot_total',
    help: 'Calls that found neither a slot nor a place to wait, and asked again later.',
    registers,
    collect() {
      this.reset()
      this.inc(use().refused)
    },
  })
}
