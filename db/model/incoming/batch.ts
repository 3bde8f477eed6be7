import { isObject } from '../../../workflows/shared/is-object.ts'
import { stepsOf } from '../../../workflows/shared/paths.ts'
import { AppError } from '../errors.ts'
import { normalise } from '../records/synonyms.ts'
import { matchesIn } from './mapping/automatic.ts'
import { WRAPPERS } from './mapping/guess.ts'
import { leaves } from './mapping/leaves.ts'
import { withoutAttempt } from './mapping/senders/attempt.ts'
import { senderOf } from './mapping/senders/index.ts'
import type { Sender } from './mapping/senders/types.ts'
import { combinedPaths } from './mapping/unmapped.ts'
import type { Payload } from './parse-body.ts'
import { type IncomingWebhook, pathOfKey, type TargetKind } from './types.ts'

/** Records of one request. */
export const MAX_ITEMS = 1_000

/**
 * Names of lists of records in an envelope, normalised. A list of attendees belongs to one booking, and one of answers to
 * one form: they are none.
 */
const LISTS = new Set('batch contacts data events leads records'.split(' '))

/** Names of lists that may be of things too: they are of records if each item has an address of a person. */
const MAYBE_LISTS = new Set(
  `results items people persons users customers clients subscribers members profiles rows entries objects list submissions
   notifications contact lead record result item person user customer client subscriber member profile row entry event`.split(
    /\s+/,
  ),
)

/** Objects in which a list of records may be: `response: {customers: {customer: […]}}`. */
const MAX_DEPTH = 3

/** What is around the list is repeated for each item: more than this, in characters of JSON, is no envelope. */
const MAX_ENVELOPE = 512

/** The same of a known sender, whose envelope may have a session. */
const MAX_ENVELOPE_OF_SENDER = 4_096

export type BatchConfig = Pick<IncomingWebhook, 'field_mapping' | 'kind'> &
  Partial<Pick<IncomingWebhook, 'deduplication' | 'workflow_inputs' | 'listeners' | 'sender' | 'also_writes'>>

/**
 * The records of a body that is a list of records, or an envelope around one, each as if it had been sent alone; with its
 * envelope, where `data: [{…}, {…}]` becomes `data: {…}`. Undefined for a body that is one record, such as a list of
 * answers, and where a path of the webhook names an item of the list. Throws invalid_request for too many. Pure.
 * @param isJson a body of JSON that is an array is below `items`.
 */
export function itemsOf(payload: Payload, webhook: BatchConfig, isJson = true): Payload[] | undefined {
  // A workflow takes the list as the sender sent it.
  if (webhook.kind === 'none') return undefined
  const found = ofSender(payload, webhook) ?? listIn(payload, webhook, isJson)
  if (!found || namesItemOf(found.path, webhook)) return undefined
  const { path, items, isAlone, sender } = found
  if (items.length > MAX_ITEMS)
    throw new AppError(
      'invalid_request',
      `the body has ${items.length} records: at most ${MAX_ITEMS} are accepted`,
    )
  if (isAlone) return items
  if (!sender) return items.map((item) => withItem(payload, path, item))
  const around = JSON.stringify(withItem(payload, path, undefined)).length
  if (around > MAX_ENVELOPE_OF_SENDER)
    throw new AppError(
      'invalid_request',
      `the body has ${around} characters around its records: at most ${MAX_ENVELOPE_OF_SENDER} are accepted`,
    )
  return items.map((item) => withoutAttempt(sender, withItem(payload, path, item)))
}

/** A list of records in a body. */
interface Found {
  path: string[]
  items: Payload[]
  /** Whether the items are records without what is around them. */
  isAlone?: boolean
  /** The known sender of the list: what another attempt changes around its records is left out. */
  sender?: Sender
}

/** The list in which a known sender has several records, such as the notifications of Salesforce. */
function ofSender(payload: Payload, { sender: chosen }: BatchConfig): Found | undefined {
  const sender = senderOf({ headers: {}, payload }, chosen)
  const path = sender?.recordsAt
  const items = path?.reduce<unknown>((value, name) => Object(value)[name], payload)
  return path && isListOfObjects(items) ? { path, items, sender: sender! } : undefined
}

function listIn(payload: Payload, webhook: BatchConfig, isJson: boolean): Found | undefined {
  const members = Object.entries(payload)
  // `parseBody` puts a body that is an array below `items`.
  if (isJson && members.length === 1 && members[0]![0] === 'items' && isListOfObjects(payload.items))
    return isAnswers('items', payload.items)
      ? undefined
      : { path: ['items'], items: payload.items, isAlone: true }
  const found = within(payload, webhook.kind as TargetKind)
  if (!found || found.items.length < 2 || isAnswers(found.path.at(-1)!, found.items)) return undefined
  if (!isEnvelope(withItem(payload, found.path, undefined), webhook)) return undefined
  // A known sender is recognised by the record itself.
  return senderOf({ headers: {}, payload: found.items[0]! }) ? { ...found, isAlone: true } : found
}

/** The only list of records in an object, or in the only object of it that may have one. */
function within(payload: Payload, kind: TargetKind, depth = MAX_DEPTH): Found | undefined {
  const members = Object.entries(payload)
  const lists = members.flatMap(([name, value]): Found[] => {
    if (!isListOfObjects(value)) return []
    const is = normalise(name)
    const isOne =
      (LISTS.has(is) && depth === MAX_DEPTH) ||
      ((LISTS.has(is) || MAYBE_LISTS.has(is)) && kind === 'contacts' && value.every(hasAddress))
    return isOne ? [{ path: [name], items: value }] : []
  })
  if (lists.length > 0 || depth === 1) return lists.length === 1 ? lists[0] : undefined
  const inner = members.flatMap(([name, value]): Found[] => {
    const is = normalise(name)
    if (!isObject(value) || !(WRAPPERS.has(is) || LISTS.has(is) || MAYBE_LISTS.has(is))) return []
    const found = within(value, kind, depth - 1)
    return found ? [{ ...found, path: [name, ...found.path] }] : []
  })
  return inner.length === 1 ? inner[0] : undefined
}

/** Whether a record has an address of a person of its own: an item of an order has a name only. */
const hasAddress = (item: Payload): boolean =>
  matchesIn(leaves(item), 'contacts').some(({ field }) => ['email', 'phone', 'mobile_phone'].includes(field))

/**
 * The body with an item in the place of its list; undefined: without it. `items: […]` becomes `item: {…}`, unless there is
 * one already.
 */
function withItem(payload: Payload, [name = '', ...inner]: string[], item: Payload | undefined): Payload {
  const { [name]: value, ...others } = payload
  if (inner.length > 0) return { ...payload, [name]: withItem(value as Payload, inner, item) }
  if (item === undefined) return others
  return { ...others, [name === 'items' && !('item' in others) ? 'item' : name]: item }
}

const isAnswers = (name: string, items: Payload[]): boolean =>
  leaves({ [name]: items.slice(0, 2) }).some(({ isAnswer, path }) => isAnswer && isMember(path))

const isListOfObjects = (value: unknown): value is Payload[] =>
  Array.isArray(value) && value.length > 0 && value.every(isObject)

/** Whether a list is one of answers: `items[0].value`, not `items[0].emails[0].value`. */
const isMember = (path: string) => /^[^.[]+\[\d+\]\.[^.[]+$/.test(path)

/**
 * Whether what is around a list is small, and says nothing of a record. Rules may read it, and what they mean is open.
 */
const isEnvelope = (envelope: Payload, { kind, field_mapping }: BatchConfig) =>
  field_mapping.mode === 'automatic' &&
  kind !== 'none' &&
  JSON.stringify(envelope).length <= MAX_ENVELOPE &&
  // An opt-out in the envelope is one of each person in the list.
  matchesIn(leaves(envelope), kind).every(({ because }) => because === 'opt-out')

/** Whether a path of the webhook reads a certain item: its owner takes the list as one record. */
function namesItemOf(
  list: string[],
  { field_mapping, deduplication, workflow_inputs = {}, listeners = [] }: BatchConfig,
): boolean {
  const rules = field_mapping.mode === 'manual' ? field_mapping.rules : []
  const paths = [
    ...rules.flatMap(({ from, when }) => (when ? [from, when.path] : [from])),
    ...combinedPaths(field_mapping),
    (deduplication && pathOfKey(deduplication)) ?? '',
    ...listeners.flatMap(({ when }) => when?.path ?? []),
    ...[workflow_inputs, ...listeners.map((one) => one.workflow_inputs)]
      .flatMap((inputs) => Object.values(inputs))
      .filter((path) => path.startsWith('payload'))
      .map((path) => path.slice('payload'.length)),
  ]
  return paths
    .map(stepsOf)
    .some((steps) => list.every((name, at) => steps[at] === name) && /^\d+$/.test(steps[list.length] ?? ''))
}
