import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { RunError, RunTrigger } from '../../workflows/interpret/run-state.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { RECORD_EVENTS } from '../../workflows/shared/events.ts'
import type { EndStatus } from '../../workflows/shared/statuses.ts'
import { EVENTS_BY_KEY, keysOf } from '../events/by-key.ts'
import { CHANGED_FIELDS, EVENT_TIME } from '../events/outbox.ts'
import { type Conditional, evaluateConditions } from '../model/events/conditions.ts'
import type { EventKey } from '../model/events/event.ts'
import { chainError, type UnstartedCode } from '../model/runs/chain.ts'
import type { WorkEnd } from '../model/work-end.ts'
import type { Wakes } from '../postgres/tenancy.ts'
import { runEnd } from '../process/traces/runs.ts'
import type { FoundProblem } from '../workflows/triggers.ts'
import type { QueuedRuns } from './queued-runs.ts'
import { insertRuns } from './runs.ts'
import { ORGANIZATION_FACTS } from './state.ts'
import { type Candidate, skipStorms } from './storms.ts'

export interface Triggered {
  /** The number of created runs, including failed ones. */
  runs: number
  /** The end of each run that was not started, but recorded as failed or skipped. */
  ended: WorkEnd[]
  /** The codes of the errors of runs that were not started, one for each. */
  skipped: UnstartedCode[]
  problems: FoundProblem[]
  /** The first event that is left for the next batch; undefined if there is none. */
  since: string | undefined
}

/** Approximate number of runs in a batch: the runs of an event are not divided. Inserting a run takes about 0.25 ms. */
const MAX_RUNS = 2_000

/**
 * Creates the runs that events trigger, in the order of the events: one for each event and workflow whose `when` holds.
 * A `when` that cannot be rendered is a problem of its trigger alone. A run too deep in its chain is recorded as
 * failed; those of a storm are skipped.
 */
export async function createTriggeredRuns(
  trx: Knex,
  events: EventKey[],
  limits: { queued: QueuedRuns; wakes: Wakes },
): Promise<Triggered> {
  if (events.length === 0) return { runs: 0, ended: [], skipped: [], problems: [], since: undefined }
  const candidates: Match[] = []
  const refused: (NewTriggeredRun & { error: { code: UnstartedCode } })[] = []
  const problems = new Map<string, FoundProblem>()
  const since = await evaluateConditions(
    await listMatches(trx, events),
    (wanted) => loadScopes(trx, wanted),
    (match, holds) => {
      if (holds instanceof NodeError) addProblem(problems, match, `when: ${holds.message}`)
      else if (holds) {
        const error = chainError(match.depth, match.cause)
        if (error) refused.push({ ...newRun(match, error), error })
        else candidates.push(match)
      }
    },
    () => candidates.length + refused.length >= MAX_RUNS,
  )
  const { started, skipped } = await skipStorms(trx, candidates, limits)
  for (const { candidate, error } of skipped) addProblem(problems, candidate, error.message)
  const runs = [
    ...started.map((match) => newRun(match, null)),
    ...refused,
    ...skipped.filter(({ isShown }) => isShown).map(({ candidate, error }) => newRun(candidate, error)),
  ]
  return {
    ...(await insertTriggered(trx, runs)),
    skipped: [...skipped, ...refused].map(({ error }) => error.code),
    problems: [...problems.values()],
    since,
  }
}

/** An event and a trigger on its name. */
interface Match extends Conditional, Candidate {
  event: string
  cause: string | null
  workflow_id: string
  version: number
  position: number
  /** The inputs of the run. */
  inputs: Record<string, unknown>
}

/** The matches in the order of the events. */
async function listMatches(trx: Knex, events: EventKey[]): Promise<Match[]> {
  const { rows } = await trx.raw<{ rows: Match[] }>(
    `select e.organization_id, e.id as event_id, e.name as event, e.depth, e.cause,
       (select coalesce(c.root, c.id) from runs c where c.organization_id = e.organization_id and c.id = e.cause) as root,
       t.workflow_id, t.version, t.position, t.inputs, t."when", w.name as workflow_name
     from ${EVENTS_BY_KEY}
     join workflow_triggers t on t.organization_id = e.organization_id and t.type = 'event'
       and t.events @> array[e.name] and t.active_since <= e.created_at
     join workflows w on w.organization_id = t.organization_id and w.id = t.workflow_id
     order by k.place, t.workflow_id, t.position`,
    keysOf(events),
  )
  return rows
}

/** The values that a `when` can read. */
type WhenScope = { trigger: RunTrigger; org: Record<string, unknown>; env: Record<string, unknown> }

/**
 * SQL: the `trigger` of a run that the event `e` starts. `:recordEvents`: the names of events whose data is a record.
 */
const TRIGGER = `jsonb_build_object('type', 'event', 'event', jsonb_build_object('id', e.id, 'name', e.name,
    'created_at', ${EVENT_TIME}),
  case when e.name = any(cast(:recordEvents as text[])) then 'record' else 'data' end, e.data, 'changed', ${CHANGED_FIELDS})
  || case when e.previous is null then '{}' else jsonb_build_object('previous', e.previous) end`

/** The scopes by event id. */
async function loadScopes(trx: Knex, events: EventKey[]): Promise<Map<string, WhenScope>> {
  const { rows } = await trx.raw<{ rows: (WhenScope & { id: string })[] }>(
    `select e.id, ${TRIGGER} as trigger, ${ORGANIZATION_FACTS} as org, o.env
     from ${EVENTS_BY_KEY} join organizations o on o.id = e.organization_id`,
    { ...keysOf(events), recordEvents: [...RECORD_EVENTS] },
  )
  return new Map(rows.map(({ id, ...scope }) => [id, scope]))
}

function addProblem(problems: Map<string, FoundProblem>, match: Match, message: string): void {
  const { organization_id, workflow_id, position, version, event, event_id } = match
  const key = `${workflow_id} ${position}`
  const count = (problems.get(key)?.count ?? 0) + 1
  const at = new Date().toISOString()
  problems.set(key, {
    organization_id,
    workflow_id,
    position,
    version,
    event,
    event_id,
    count,
    at,
    message,
  })
}

interface NewTriggeredRun extends EventKey {
  id: string
  workflow_id: string
  version: number
  inputs: Record<string, unknown>
  error: RunError | null
}

const newRun = (match: Match, error: RunError | null): NewTriggeredRun => {
  const { organization_id, event_id, workflow_id, version, inputs } = match
  return {
    id: uuidv7(),
    organization_id,
    event_id,
    workflow_id,
    version,
    inputs,
    error,
  }
}

interface Inserted {
  organization_id: string
  id: string
  workflow_id: string
  trace_id: string
  status: 'queued' | Extract<EndStatus, 'failed' | 'skipped'>
}

/** The data of the events does not leave the database. @returns the number of inserted runs, and which have ended. */
async function insertTriggered(
  trx: Knex,
  runs: NewTriggeredRun[],
): Promise<Pick<Triggered, 'runs' | 'ended'>> {
  if (runs.length === 0) return { runs: 0, ended: [] }
  const { rows } = await trx.raw<{ rows: Inserted[] }>(
    `${insertRuns(
      `select r.organization_id, r.id, r.workflow_id, r.version, w.name, ${TRIGGER} as trigger,
         cast(e.id as text) as trigger_key, r.inputs,
         case when e.name = any(cast(:recordEvents as text[])) then e.subject_id end as record_id, e.depth, e.cause,
         cast(null as uuid) as parent_run_id, r.error, e.trace_id
       from jsonb_to_recordset(:runs) as r(organization_id uuid, id uuid, event_id uuid, workflow_id uuid,
         version integer, inputs jsonb, error jsonb)
       join events e on e.organization_id = r.organization_id and e.id = r.event_id
       join workflows w on w.organization_id = r.organization_id and w.id = r.workflow_id
       order by r.id`,
    )} returning organization_id, id, workflow_id, trace_id, status`,
    { runs: JSON.stringify(runs), recordEvents: [...RECORD_EVENTS] },
  )
  return {
    runs: rows.length,
    ended: rows.flatMap(({ organization_id, status, ...run }) =>
      status === 'queued' ? [] : [runEnd(organization_id, run, 'event', status, 0)],
    ),
  }
}
