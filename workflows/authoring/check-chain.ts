import type { NodeSpec } from '../language/definition.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { type Problem, pointer } from '../language/problems.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import { findNodeType } from '../nodes/index.ts'
import { CHAIN_DEPTH } from '../shared/limits.ts'
import type { Lowered } from './lower.ts'

/** A field that a condition asks for among the changed ones. */
const NAMED_CHANGE = /trigger\.changed\s+contains\s+(['"])([^'"]+)\1/g

/** Conditions that end the chain, by the action of the event. */
const EXAMPLES: Record<string, string> = {
  updated: '`{{ trigger.changed contains "<a field that it does not write>" }}`',
  created: '`{{ trigger.record.<field that it sets> != … }}`',
}

const NOTHING = { events: [], fields: [] }

/**
 * Warns about a workflow whose nodes raise the event that starts it. A condition that reads what changed, or a field
 * that the workflow writes, is taken for the end of the chain.
 */
export function checkChain({ definition, texts, nodePath }: Lowered, catalogue: Catalogue): Problem[] {
  const { trigger, nodes } = definition
  if (trigger.type !== 'event') return []
  const { when = '' } = trigger
  const tested = texts.readable(when).map(({ path }) => path.map(String))
  const named = [...when.matchAll(NAMED_CHANGE)].map(([, , field]) => field!)
  /** Whether the condition reads something that another write by the node does not make hold again. */
  const ends = (node: NodeSpec, written: readonly string[]) =>
    tested.some(([root, member, field]) => {
      if (root !== 'trigger') return false
      if (member !== 'changed')
        return member === 'previous' || (field !== undefined && written.includes(field))
      return !named.some((name) => written.includes(name) && isComputed(node, name))
    })
  /** Whether the value of a field may be another one each time. */
  const isComputed = ({ config }: NodeSpec, field: string) =>
    texts.of(config).some(({ text, path }) => path.includes(field) && hasPlaceholder(text))
  return nodes.flatMap((node): Problem[] => {
    const { events, fields } = findNodeType(node.type)?.raises(node.config, catalogue) ?? NOTHING
    const event = events.find((name) => trigger.events.includes(name))
    if (event === undefined || ends(node, fields)) return []
    return [
      {
        code: 'triggers_itself',
        message: `${node.id} raises ${event}, which starts this workflow again: the chain is cut after ${CHAIN_DEPTH} runs, by a run that failed with the code \`chain_too_long\` in the list of runs`,
        path: `${nodePath(node.id)}${pointer('config')}`,
        node_id: node.id,
        hint: `${when === '' ? 'add a `when` to the trigger that does' : 'let the `when` of the trigger'} not hold for what the node writes, such as ${EXAMPLES[event.split('.')[1]!] ?? '`{{ trigger.data.<field> != … }}`, or raise another event'}`,
      },
    ]
  })
}
