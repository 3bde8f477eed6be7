import type { Definition, InputSpec } from '../language/definition.ts'
import {
  BOOLEAN,
  INTEGER,
  isUnknown,
  listOf,
  MAPPING,
  members,
  memberType,
  NULL,
  NUMBER,
  oneOf,
  TEXT,
  typeOfSchema,
  UNKNOWN,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import { findNodeType } from '../nodes/index.ts'
import { RECORD_EVENTS } from '../shared/events.ts'
import { TARGET_KINDS } from '../shared/record-kinds.ts'
import { RUN_STATUSES } from '../shared/statuses.ts'
import { GIVEN_MEMBERS } from './trigger-members.ts'

/** The types of the roots that do not depend on nodes: `inputs`, `trigger`, `run`, `org`, and the error of a node. */

const INPUT_TYPES: Record<InputSpec['type'], ValueType> = {
  string: TEXT,
  number: NUMBER,
  boolean: BOOLEAN,
  object: MAPPING,
  array: listOf(UNKNOWN),
  any: UNKNOWN,
}

/** The type of an input of the workflow. */
export const typeOfInput = ({ type, enum: allowed }: InputSpec): ValueType =>
  allowed ? oneOf(allowed) : INPUT_TYPES[type]

const ERROR = members({
  code: TEXT,
  message: TEXT,
  node_id: TEXT,
  details: MAPPING,
})

/** The type of a node's error. */
export function errorOf(type: string): ValueType {
  const details = findNodeType(type)?.errorDetails
  return details
    ? members({ code: TEXT, message: TEXT, node_id: TEXT, details: typeOfSchema(details) })
    : ERROR
}

const OF_RUN = { id: TEXT, workflow_id: TEXT, workflow_name: TEXT, started_at: TEXT }
export const RUN = members(OF_RUN)
/** What cleanup nodes read of the end of their run; one that has completed has no error. */
export const RUN_IN_CLEANUP = members({ ...OF_RUN, status: oneOf(['failed', 'cancelled']), error: ERROR })
export const RUN_AT_END = members({
  ...OF_RUN,
  status: oneOf(['completed', 'failed', 'cancelled']),
  error: unionOf([ERROR, NULL]),
})
export const ORGANIZATION = members({ id: TEXT, name: TEXT, currency: TEXT, timezone: TEXT })

/** What the runs of an error workflow read, whatever its own trigger is. */
const OF_ERRORS = {
  run: members({
    id: TEXT,
    workflow_id: TEXT,
    workflow_name: TEXT,
    workflow_version: INTEGER,
    status: oneOf(RUN_STATUSES),
    trigger: TEXT,
    created_at: TEXT,
  }),
  node: unionOf([members({ id: TEXT, type: TEXT, title: TEXT }), NULL]),
  error: ERROR,
}

/** The type of `trigger`. */
export function triggerType(trigger: Definition['trigger'], catalogue: Catalogue): ValueType {
  const kinds = (names: readonly string[]) =>
    unionOf(names.flatMap((name) => catalogue.entities[name]?.record ?? []))
  switch (trigger.type) {
    case 'event':
      return members({ ...eventMembers(trigger.events, catalogue), ...OF_ERRORS })
    case 'webhook':
      return members({
        type: TEXT,
        record: kinds(TARGET_KINDS),
        payload: catalogue.payload ?? UNKNOWN,
        headers: UNKNOWN,
        query: UNKNOWN,
        webhook: members({ id: TEXT, name: TEXT }),
        action: oneOf(['created', 'updated', 'triggered']),
        ...OF_ERRORS,
      })
    case 'schedule':
      return members({
        ...OF_ERRORS,
        type: TEXT,
        scheduled_at: TEXT,
        cron: TEXT,
        every: TEXT,
        timezone: TEXT,
        backfill: BOOLEAN,
      })
    case 'manual': {
      // `key` or `user`: who started it; `run_id`: the run that did. What nobody gives is reported as such.
      const others = [...GIVEN_MEMBERS, 'webhook', 'action', 'key', 'user', 'run_id', 'batch_id']
      const open = Object.fromEntries(others.map((name) => [name, UNKNOWN]))
      return members({ ...OF_ERRORS, type: TEXT, ...open })
    }
  }
}

/** The members of `trigger` in a run that one of these events starts. */
function eventMembers(events: readonly string[], catalogue: Catalogue): Record<string, ValueType> {
  const [ofRecords, others] = [true, false].map((wanted) =>
    events.filter((name) => RECORD_EVENTS.includes(name) === wanted),
  ) as [string[], string[]]
  const data = (names: string[]) => unionOf(names.map((name) => catalogue.eventData(name) ?? UNKNOWN))
  const record = data(ofRecords)
  const fields = namesIn(record)
  return {
    type: TEXT,
    event: members({ id: TEXT, name: events.length > 0 ? oneOf(events) : TEXT, created_at: TEXT }),
    ...(ofRecords.length > 0 ? { record } : {}),
    ...(others.length > 0 || events.length === 0 ? { data: data(others) } : {}),
    previous: others.length > 0 || isUnknown(record) ? UNKNOWN : record,
    changed: listOf(others.length > 0 || fields.length === 0 ? TEXT : oneOf(fields)),
  }
}

/** The names of the members that a mapping, or one of several, has. */
function namesIn(type: ValueType): string[] {
  const found = memberType(type, '\u0000')
  return 'names' in found ? [...found.names] : []
}
