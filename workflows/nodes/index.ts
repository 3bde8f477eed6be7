import { nearest } from '../shared/nearest.ts'
import { aggregateItems } from './aggregate-items.ts'
import { aiPrompt } from './ai-prompt.ts'
import { analyticsQueryNode } from './analytics-query.ts'
import { apiRequest } from './api-request.ts'
import { approval } from './approval.ts'
import { code } from './code.ts'
import { condition } from './condition.ts'
import { convertCurrency } from './convert-currency.ts'
import { crmManager } from './crm-manager.ts'
import type { NodeType } from './define.ts'
import { delay } from './delay.ts'
import { emitEvent } from './emit-event.ts'
import { filterItems } from './filter-items.ts'
import { forEach } from './for-each.ts'
import { formatDate } from './format-date.ts'
import { formatPhone } from './format-phone.ts'
import { hash } from './hash.ts'
import { keyValue } from './key-value.ts'
import { knowledgeAdd } from './knowledge-add.ts'
import { knowledgeSearch } from './knowledge-search.ts'
import { parseCsv } from './parse-csv.ts'
import { parseJson } from './parse-json.ts'
import { peopleNode } from './people.ts'
import { renderText } from './render-text.ts'
import { repeat } from './repeat.ts'
import { respond } from './respond.ts'
import { runWorkflow } from './run-workflow.ts'
import { sendEmail } from './send-email.ts'
import { sendWebhook } from './send-webhook.ts'
import { setFields } from './set-fields.ts'
import { slackMessage } from './slack-message.ts'
import { sortItems } from './sort-items.ts'
import { splitText } from './split-text.ts'
import { stop } from './stop.ts'
import { switchNode } from './switch.ts'
import { waitForEvent } from './wait-for-event.ts'
import { waitForSignal } from './wait-for-signal.ts'
import { waitUntil } from './wait-until.ts'

/** Every node type, by name. To add one: its file and a line here. */
export const nodeTypes: Record<string, NodeType> = byType([
  crmManager,
  peopleNode,
  analyticsQueryNode,
  condition,
  switchNode,
  forEach,
  repeat,
  setFields,
  filterItems,
  sortItems,
  aggregateItems,
  splitText,
  formatPhone,
  formatDate,
  parseJson,
  parseCsv,
  hash,
  renderText,
  keyValue,
  knowledgeSearch,
  knowledgeAdd,
  delay,
  waitUntil,
  waitForEvent,
  waitForSignal,
  approval,
  runWorkflow,
  convertCurrency,
  code,
  apiRequest,
  sendWebhook,
  slackMessage,
  aiPrompt,
  sendEmail,
  emitEvent,
  respond,
  stop,
])

const loopTypes = (repeats: boolean) =>
  Object.values(nodeTypes)
    .filter((type) => type.body !== undefined && (type.repeats === true) === repeats)
    .map(({ type }) => type)
    .join(' or ')

/** The types of loops over items, for messages. */
export const EACH_TYPES = loopTypes(false)

/** The types of loops that run until a condition holds, for messages. */
export const REPEAT_TYPES = loopTypes(true)

const emitters = Object.values(nodeTypes).filter(({ emits }) => emits !== undefined)

/** The types that raise events of any name, each with the key of its config that holds the name. */
export const EMITTERS = emitters.map(({ type, emits }) => ({ type, key: emits! }))

/** The same, for messages. */
export const EMIT_TYPES = emitters.map(({ type }) => type).join(' or ')

/** The external types that cannot read secrets, for messages. */
export const WITHOUT_SECRETS = Object.values(nodeTypes)
  .filter(
    ({ example, ...type }) =>
      type.effectClass(example.config) === 'external' && type.outputOnly(example.config),
  )
  .map(({ type }) => `\`${type}\``)
  .join(' and ')

/** The node type of that name; undefined also for names such as `constructor`. */
export function findNodeType(type: string): NodeType | undefined {
  return Object.hasOwn(nodeTypes, type) ? nodeTypes[type] : undefined
}

function byType(types: NodeType[]): Record<string, NodeType> {
  return Object.fromEntries(types.map((type) => [type.type, type]))
}

const key = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

const otherNames = new Map(
  Object.values(nodeTypes).flatMap(({ type, alsoCalled }) =>
    [type, ...alsoCalled].map((name) => [key(name), type] as const),
  ),
)

/** The node type that a name means: its own name, its name in other products, or the nearest name. */
export function meantType(name: string): NodeType | undefined {
  const type = otherNames.get(key(name)) ?? nearest(name, Object.keys(nodeTypes))
  return findNodeType(name) ?? (type === undefined ? undefined : nodeTypes[type])
}
