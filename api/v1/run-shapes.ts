import { z } from 'zod'
import { actor } from '../../db/model/records/schemas.ts'
import { durationOf, type RunSummary, WAITING_FOR } from '../../db/runs/views.ts'
import { CLEANUP_ROLES } from '../../workflows/language/definition.ts'
import { ITERATION_STATUSES, NODE_STATUSES, RUN_STATUSES } from '../../workflows/shared/statuses.ts'
import { runKeys } from './planned-keys.ts'
import { linksOf, runLinks } from './run-links.ts'
import { runWait } from './run-waits.ts'

/** Runs, their nodes and items on the wire. */

const time = z.iso.datetime()

/** A run in lists. */
export const runSummary = z
  .object({
    object: z.literal('run'),
    run_id: z.uuid(),
    workflow_id: z.uuid(),
    workflow_name: z.string(),
    workflow_version: z.int().meta({ description: 'The current one: see `migrations`.' }),
    status: z.enum(RUN_STATUSES),
    trigger: z.object({ type: z.string() }).meta({ description: 'The type of the trigger.' }),
    record_id: z.uuid().nullable(),
    parent_run_id: z.uuid().nullable().meta({ description: 'The parent run, whose node started it.' }),
    retry_of: z.uuid().nullable().meta({
      description: 'For a retry: the first run. Calls of external nodes keep its idempotency keys.',
    }),
    stuck_reason: z.string().nullable().meta({ description: 'The reason why the run makes no progress.' }),
    expected_by: time.nullable().meta({
      description:
        'The creation time and the `expected_within` of its version: if it is open then, it is late.',
    }),
    late_at: time.nullable().meta({ description: 'The time of the event `workflow.late`; null: not late.' }),
    created_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
    duration_ms: z.int().nullable().meta({ description: 'From `started_at` to `ended_at`.' }),
    links: runLinks,
  })
  .meta({ id: 'RunSummary' })

const error = z
  .object({
    code: z.string(),
    message: z.string(),
    node_id: z.string().optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'RunError' })
  .nullable()

const loop = z
  .object({
    loop: z
      .string()
      .meta({ description: 'Its name in `listIterations`: `each`; in a body, `outer:1/inner`.' }),
    count: z.int().meta({ description: 'The items; of a `repeat`, its `max_turns`.' }),
    started: z.int(),
    succeeded: z.int(),
    failed: z.int(),
  })
  .meta({ id: 'RunLoop', description: 'For a loop: the progress of its items or turns.' })

/** An item or a turn of a loop. */
export const iteration = z
  .object({
    path: z.string().meta({ description: 'Its name: `each:3`. `getRun` with it shows its nodes.' }),
    index: z.int(),
    status: z.enum(ITERATION_STATUSES),
    item: z.unknown().meta({ description: 'In a `repeat`: the result of the turn before.' }),
    output: z.unknown(),
    error,
    started_at: time,
    ended_at: time.nullable(),
    duration_ms: z.int().nullable(),
  })
  .meta({ id: 'RunIteration' })

const attempt = z
  .object({
    number: z.int().meta({ description: 'One that repeats a lost attempt has its number.' }),
    started_at: time,
    ended_at: time.nullable(),
    duration_ms: z.int().nullable(),
    in_progress: z.boolean(),
    response_status: z.int().nullable().meta({ description: 'The HTTP status of the answer.' }),
    error: error.meta({ description: '`unreported`: its worker was lost, or the run ended meanwhile.' }),
    next_attempt_at: time.nullable(),
  })
  .meta({ id: 'NodeAttempt' })

/** A run with its nodes and waits. */
export const runShape = runSummary
  .extend({
    trigger: z.record(z.string(), z.unknown()),
    inputs: z.record(z.string(), z.unknown()),
    outputs: z.record(z.string(), z.unknown()).nullable(),
    error,
    retry: z
      .object({
        run_id: z.uuid().meta({ description: 'The run that was retried.' }),
        from_node: z.string().nullable().meta({ description: 'null: from the start.' }),
        items: z.array(z.string()).optional().meta({ description: 'The named items.' }),
      })
      .nullable()
      .meta({ description: 'null: the run is not a retry.' }),
    migrations: z
      .array(z.object({ from_version: z.int(), to_version: z.int(), at: time, by: actor }))
      .meta({ description: 'Its migrations to other versions, the oldest first; at most the last 50.' }),
    trace_id: z.string().meta({
      description:
        'The trace (W3C Trace Context) of the request that led to the run; calls of other services pass it on in `traceparent`.',
    }),
    cancel_requested_at: time.nullable(),
    cancel_problem: z
      .object({ message: z.string(), event: z.string(), event_id: z.uuid(), at: time })
      .nullable()
      .meta({
        description:
          'Why the run could last not be compared with an event of `settings.cancel_on`, which did not cancel it.',
      }),
    pause_requested_at: time.nullable().meta({
      description:
        'A running run is paused as soon as no attempt of a node is in progress; it starts no further one.',
    }),
    ending: z
      .object({ status: z.enum(['completed', 'failed', 'cancelled']), error, at: time })
      .nullable()
      .meta({
        description:
          'The decided outcome of a run that is `running` or `paused`, while its undo, on_cancel and finally nodes run; null before, and when it has ended.',
      }),
    waiting_for: z.enum(WAITING_FOR).nullable().meta({
      description:
        'The reason why a queued run waits: for the end of a `predecessor` with its key, which is being cancelled; for a `debounce`, a `rate` or the slot of its `key`, by the settings of its workflow; or it needs a free slot of its workflow (`concurrency`), of the organization (its limit of active runs), or of the workers. `slot` of a running run: one of its calls waits for a slot, see `waiting_for` of its nodes. `mail_turn`: one of its mails waits for a minute with room; `rate`: a call, for the `rate` of its node.',
    }),
    starts_at: time.nullable().meta({
      description:
        'The time until which a queued run waits for `debounce` or `rate`. A later start of the same key takes the place of one that is debounced.',
    }),
    key: z.string().nullable().meta({
      description:
        'The `key` of the request that started it: no other open run of the workflow has it. A retry has none.',
    }),
    keys: runKeys,
    waits: z.array(runWait).meta({
      description: 'The waits of its nodes, except for times: for events, signals, approvals and child runs.',
    }),
    nodes: z
      .array(
        z
          .object({
            path: z.string().meta({
              description:
                'The iteration of a loop that it is in, such as `each:3`; empty outside of any loop.',
            }),
            node_id: z.string(),
            node_type: z.string(),
            title: z.string(),
            status: z.enum(NODE_STATUSES),
            attempt: z.int(),
            next_attempt_at: time.nullable().meta({
              description: 'The time of the attempt `attempt`, if the one before failed; null: it has begun.',
            }),
            waiting_for: z.enum(['slot', 'mail_turn', 'rate']).nullable().meta({
              description:
                '`slot`: its call waits for a free slot of a worker. An organization, and a service that is called, have fewer slots than are left to others. `mail_turn`: its mail waits for a minute with room, at `next_attempt_at`. `rate`: by its `rate`; it asks again at `next_attempt_at`.',
            }),
            input: z.unknown().meta({ description: 'The rendered config.' }),
            output: z.unknown(),
            handle: z.string().nullable().meta({ description: 'The selected output handle.' }),
            error,
            wait_until: time.nullable(),
            started_at: time,
            ended_at: time.nullable(),
            duration_ms: z.int().nullable().meta({
              description: 'From `started_at` to `ended_at`, with all attempts and waits.',
            }),
            loop: loop.nullable(),
            role: z.enum(CLEANUP_ROLES).nullable().meta({
              description: 'For a node that runs once the outcome of the run is decided; null: any other.',
            }),
            undoes: z.string().nullable().meta({
              description: 'For an `undo` node: the id of the node whose effect it compensates.',
            }),
            attempts: z.array(attempt).meta({
              description:
                'For an external node: its last 20 attempts, the oldest first. Waits for a turn or a slot are none.',
            }),
          })
          .meta({ id: 'RunNode' }),
      )
      .meta({
        description: 'The nodes in the order of execution: outside of any loop, or in the iteration `path`.',
      }),
  })
  .meta({ id: 'Run' })

/** A run without inputs and outputs. */
export function presentRunSummary(run: RunSummary, config: Parameters<typeof linksOf>[1]) {
  const { id, trigger, ...rest } = run
  return {
    object: 'run',
    run_id: id,
    ...rest,
    trigger: { type: trigger.type },
    duration_ms: durationOf(run),
    links: linksOf(id, config),
  }
}
