import type { NodeSpec } from '../language/definition.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { type Problem, pointer } from '../language/problems.ts'
import { type Catalogue, kindNamed } from '../nodes/catalogue.ts'
import { isObject } from '../shared/is-object.ts'
import { CHAIN_DEPTH } from '../shared/limits.ts'
import type { Lowered } from './lower.ts'

/** The actions of the events that an operation raises. */
const ACTIONS: Record<string, readonly string[]> = {
  create: ['created'],
  update: ['updated'],
  upsert: ['created', 'updated'],
  delete: ['deleted'],
}

/** The events that follow from a written field, by kind and field. */
const OF_FIELDS: Record<string, Record<string, readonly string[]>> = {
  deals: { stage: ['stage_changed', 'won', 'lost'] },
  tasks: { assignee_id: ['assigned'], status: ['completed'] },
}

/**
 * Warns about a workflow whose nodes raise the event that starts it. A condition that reads what changed, or a field
 * that the workflow writes, is taken for the end of the chain.
 */
export function checkChain({ definition, texts, nodePath }: Lowered, catalogue: Catalogue): Problem[] {
  const { trigger, nodes } = definition
  if (trigger.type !== 'event') return []
  const tested = texts.readable(trigger.when ?? '').map(({ path }) => path.map(String))
  const ends = (written: readonly string[]) =>
    tested.some(
      ([root, member, field]) =>
        root === 'trigger' &&
        (member === 'changed' || member === 'previous' || (field !== undefined && written.includes(field))),
    )
  return nodes.flatMap((node): Problem[] => {
    const { events, fields } = raisedBy(node, catalogue)
    const event = events.find((name) => trigger.events.includes(name))
    if (event === undefined || ends(fields)) return []
    return [
      {
        code: 'triggers_itself',
        message: `${node.id} raises ${event}, which starts this workflow again: the chain is cut after ${CHAIN_DEPTH} runs, by a run that failed with the code \`chain_too_long\` in the list of runs`,
        path: `${nodePath(node.id)}${pointer('config')}`,
        node_id: node.id,
        hint: 'add a `when` to the trigger that does not hold for what the node writes, such as `{{ trigger.changed contains "<a field that it does not write>" }}`',
      },
    ]
  })
}

/** The events that a node raises, and the names of the fields that it writes. */
function raisedBy(
  { type, config }: Pick<NodeSpec, 'type' | 'config'>,
  catalogue: Catalogue,
): { events: string[]; fields: string[] } {
  if (type === 'emit_event') {
    const { event, data } = config
    const isNamed = typeof event === 'string' && !hasPlaceholder(event)
    return { events: isNamed ? [event] : [], fields: isObject(data) ? Object.keys(data) : [] }
  }
  const { operation, entity, fields: written } = config
  const kind = type === 'crm_manager' ? kindNamed(catalogue, String(entity)) : undefined
  if (kind === undefined) return { events: [], fields: [] }
  const fields = isObject(written) ? Object.keys(written) : []
  const actions = [
    ...(ACTIONS[String(operation)] ?? []),
    ...fields.flatMap((field) => OF_FIELDS[kind]?.[field] ?? []),
  ]
  return { events: actions.map((action) => `${catalogue.entities[kind]!.object}.${action}`), fields }
}
