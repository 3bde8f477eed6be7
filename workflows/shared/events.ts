import { nearest } from './nearest.ts'
import {
  capitalized,
  type KindObject,
  kindNames,
  kindObjects,
  mergeableKinds,
  RECORD_KINDS,
  withArticle,
} from './record-kinds.ts'

/** An event that an outgoing webhook can select. */
export interface CatalogueEvent {
  name: string
  title: string
  /**
   * What `data` holds: a record of this kind, the membership of a record in a list, a run, an approval, an outgoing
   * webhook, or any object that the raising node sets.
   */
  subject: KindObject | 'list_membership' | 'run' | 'approval' | 'webhook' | 'any'
}

/** The actions of the record kinds, with their words in titles. Only those of `mergeableKinds` are merged. */
export const ACTIONS = {
  created: 'created',
  updated: 'updated',
  deleted: 'deleted',
  restored: 'restored',
  merged: 'merged with another',
}

/** The events that the service itself raises. To add one: a line below, and the code that inserts it. */
const SERVICE_EVENTS: readonly CatalogueEvent[] = [
  ...kindNames.flatMap((kind) => {
    const subject = RECORD_KINDS[kind]
    return Object.entries(ACTIONS)
      .filter(([action]) => action !== 'merged' || mergeableKinds.some((mergeable) => mergeable === kind))
      .map(([action, done]) => ({
        name: `${subject}.${action}`,
        title: `${capitalized(withArticle(subject))} was ${done}`,
        subject,
      }))
  }),
  { name: 'deal.stage_changed', title: 'A deal that exists moved to another stage', subject: 'deal' },
  { name: 'deal.won', title: 'A deal was won, or created as won', subject: 'deal' },
  { name: 'deal.lost', title: 'A deal was lost, or created as lost', subject: 'deal' },
  { name: 'task.assigned', title: 'A task was assigned', subject: 'task' },
  { name: 'task.reminder', title: 'The time of the reminder of a task has come', subject: 'task' },
  { name: 'task.completed', title: 'A task was completed', subject: 'task' },
  { name: 'consent.granted', title: 'A contact gave a consent', subject: 'consent' },
  { name: 'consent.withdrawn', title: 'A contact withdrew a consent', subject: 'consent' },
  { name: 'list.entered', title: 'A record entered a list', subject: 'list_membership' },
  { name: 'list.left', title: 'A record left a list', subject: 'list_membership' },
  { name: 'workflow.started', title: 'A run started', subject: 'run' },
  { name: 'workflow.completed', title: 'A run completed', subject: 'run' },
  { name: 'workflow.failed', title: 'A run failed', subject: 'run' },
  { name: 'workflow.late', title: 'A run is open for longer than expected', subject: 'run' },
  { name: 'approval.requested', title: 'A run asks for a decision', subject: 'approval' },
  { name: 'approval.reminder', title: 'A run still waits for a decision', subject: 'approval' },
  { name: 'approval.escalated', title: 'A run has waited too long for a decision', subject: 'approval' },
  { name: 'approval.answered', title: 'A decision was made', subject: 'approval' },
  { name: 'webhook.disabled', title: 'The service deactivated an outgoing webhook', subject: 'webhook' },
]

/** The catalogue. A node can raise any other `<entity>.<action>`; the two invoice events are examples. */
export const EVENTS: readonly CatalogueEvent[] = [
  ...SERVICE_EVENTS,
  { name: 'invoice.created', title: 'An invoice was created (raised by a workflow)', subject: 'any' },
  { name: 'invoice.paid', title: 'An invoice was paid (raised by a workflow)', subject: 'any' },
]

/** The events whose data is a record. */
export const RECORD_EVENTS: readonly string[] = SERVICE_EVENTS.filter(({ subject }) =>
  kindObjects.some((kind) => kind === subject),
).map(({ name }) => name)

/** `<entity>.<action>`, such as `invoice.paid`. */
export const EVENT_NAME = /^[a-z][a-z0-9_]{0,63}\.[a-z][a-z0-9_]{0,63}$/

/** Characters of the longest name. */
export const EVENT_NAME_LENGTH = 129

const ENTITY_EVENTS = /^[a-z][a-z0-9_]{0,63}\.\*$/

/** Whether an endpoint's pattern selects all events of an entity, `contact.*`, or all events, `*`. */
export const isWildcard = (name: string) => name === '*' || ENTITY_EVENTS.test(name)

/** The patterns that select an event: its name, and the wildcard of its entity. */
const patternsOf = (name: string) => [name, `${name.split('.')[0]}.*`]

const PATTERNS = [...new Set(EVENTS.flatMap(({ name }) => patternsOf(name)))]

/** The events of the catalogue that a pattern selects. */
export const selectedBy = (pattern: string): CatalogueEvent[] =>
  EVENTS.filter(({ name }) => pattern === '*' || patternsOf(name).includes(pattern))

/**
 * The catalogue name at edit distance 1 from a misspelt name. Any other unknown name may be an event that a node
 * raises.
 */
export const misspelt = (name: string): string | undefined =>
  PATTERNS.includes(name) ? undefined : nearest(name, PATTERNS, 1)

/** The nearest name of the catalogue, for a hint on an invalid name. */
export const nearestEvent = (name: string): string | undefined => nearest(name, PATTERNS)

/** An event that matches a pattern, for examples. */
export function exampleEvent(pattern: string): string {
  const entity = pattern === '*' ? 'contact' : pattern.split('.')[0]
  if (!isWildcard(pattern)) return pattern
  const known = EVENTS.find(({ name }) => name.startsWith(`${entity}.`))
  return known?.name ?? `${entity}.created`
}

/** The events that the service raises about what an event is about: `deal.created` and others of `deal.closed`. */
export const eventsBeside = (name: string): string[] =>
  SERVICE_EVENTS.map((event) => event.name).filter((other) => other.split('.')[0] === name.split('.')[0])

/** Whether the service itself raises the event: nodes may not. */
export const isServiceEvent = (name: string) => SERVICE_EVENTS.some((event) => event.name === name)
