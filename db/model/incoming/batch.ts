import { isObject } from '../../../workflows/shared/is-object.ts'
import { stepsOf } from '../../../workflows/shared/paths.ts'
import { AppError } from '../errors.ts'
import { normalise } from '../records/synonyms.ts'
import { matchesIn } from './mapping/automatic.ts'
import { leaves } from './mapping/leaves.ts'
import { senderOf } from './mapping/senders/index.ts'
import { combinedPaths } from './mapping/unmapped.ts'
import type { Payload } from './parse-body.ts'
import { type IncomingWebhook, pathOfKey } from './types.ts'

/** Records of one request. */
export const MAX_ITEMS = 1_000

/**
 * Names of lists of records in an envelope, normalised. A list of attendees belongs to one booking, and one of items to
 * one order: they are none.
 */
const LISTS = new Set('batch contacts data events leads records'.split(' '))

/** What is around the list is repeated for each item: more than this, in characters of JSON, is no envelope. */
const MAX_ENVELOPE = 512

export type BatchSettings = Pick<IncomingWebhook, 'field_mapping' | 'kind'> &
  Partial<Pick<IncomingWebhook, 'deduplication' | 'workflow_inputs' | 'listeners'>>

/**
 * The records of a JSON body that is a list of records, or an envelope around one, each as if it had been sent alone;
 * with its envelope, where `data: [{…}, {…}]` becomes `data: {…}`. Undefined for a body that is one record, such as a
 * list of answers, and where a path of the webhook names an item of the list. Throws invalid_request for too many. Pure.
 */
export function itemsOf(payload: Payload, settings: BatchSettings): Payload[] | undefined {
  // A workflow takes the list as the sender sent it.
  if (settings.kind === 'none') return undefined
  const members = Object.entries(payload)
  // `parseBody` puts a body that is an array below `items`.
  const isBare = members.length === 1 && members[0]![0] === 'items'
  const lists = members.filter(
    ([name, value]) => (isBare || LISTS.has(normalise(name))) && isListOfObjects(value),
  )
  const [name, list] = lists[0] ?? []
  if (name === undefined || lists.length > 1 || namesItemOf(name, settings)) return undefined
  const items = list as Payload[]
  const { [name]: _, ...envelope } = payload
  if (!isBare && (items.length < 2 || !isEnvelope(envelope, settings))) return undefined
  if (leaves({ [name]: items.slice(0, 2) }).some(({ isAnswer, path }) => isAnswer && isMember(path)))
    return undefined
  if (items.length > MAX_ITEMS)
    throw new AppError(
      'invalid_request',
      `the body has ${items.length} records: at most ${MAX_ITEMS} are accepted`,
    )
  // A known sender is recognised by the record itself.
  const isAlone = isBare || senderOf({ headers: {}, payload: items[0]! })
  return isAlone ? items : items.map((item) => ({ ...envelope, [name]: item }))
}

const isListOfObjects = (value: unknown): value is Payload[] =>
  Array.isArray(value) && value.length > 0 && value.every(isObject)

/** Whether a list is one of answers: `items[0].value`, not `items[0].emails[0].value`. */
const isMember = (path: string) => /^[^.[]+\[\d+\]\.[^.[]+$/.test(path)

/**
 * Whether what is around a list is small, and says nothing of a record. Rules may read it, and what they mean is open.
 */
const isEnvelope = (envelope: Payload, { kind, field_mapping }: BatchSettings) =>
  field_mapping.mode === 'automatic' &&
  kind !== 'none' &&
  JSON.stringify(envelope).length <= MAX_ENVELOPE &&
  matchesIn(leaves(envelope), kind).length === 0

/** Whether a path of the webhook reads a certain item: its owner takes the list as one record. */
function namesItemOf(
  name: string,
  { field_mapping, deduplication, workflow_inputs = {}, listeners = [] }: BatchSettings,
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
  return paths.map(stepsOf).some(([first, second]) => first === name && /^\d+$/.test(second ?? ''))
}
