import { type Problem, pointer } from '../language/problems.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import { findNodeType } from '../nodes/index.ts'
import { CHAIN_DEPTH } from '../shared/limits.ts'
import type { Lowered } from './lower.ts'

const NOTHING = { events: [], fields: [] }

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
    const { events, fields } = findNodeType(node.type)?.raises(node.config, catalogue) ?? NOTHING
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
