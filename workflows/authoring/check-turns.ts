import type { Definition, NodeSpec } from '../language/definition.ts'
import type { Problem } from '../language/problems.ts'
import type { Texts } from '../language/texts.ts'
import { type Bodies, isRepeat } from './loops.ts'
import type { Lowered } from './lower.ts'

/** What differs from turn to turn, besides the nodes of the body. */
const CHANGING = ['index', 'previous']

/** The words that `date` takes for the current time. */
const NOW = /['"](now|today)['"]/

/** Warns about conditions that are the same after each turn: such a loop runs once, or up to its limit. */
export function checkTurns({ definition, texts, nodePath }: Lowered, bodies: Bodies): Problem[] {
  return definition.nodes
    .filter((node) => isRepeat(node) && node.config.until !== undefined)
    .filter((node) => !changes(node, { definition, texts, bodies }))
    .map((node) => ({
      code: 'constant_until',
      message: `until of ${node.id} reads nothing that changes from turn to turn: no node of the body, neither index nor previous`,
      path: `${nodePath(node.id)}/config/until`,
      node_id: node.id,
      hint: `read a node of the body: \`"{{ nodes.<id>.output.<field> == <value> }}"\`; to run a number of turns, \`"{{ index == ${Number(node.config.max_turns ?? 10) - 1} }}"\``,
    }))
}

function changes(
  { id, config: { until } }: NodeSpec,
  { texts, bodies }: { definition: Definition; texts: Texts; bodies: Bodies },
): boolean {
  if (typeof until !== 'string') return false
  // Text that does not parse is reported as such.
  return (
    NOW.test(until) ||
    (texts.parts(until) === undefined && until.includes('{{')) ||
    texts.readable(until).some(({ path: [root, name] }) => {
      if (root !== 'nodes') return CHANGING.includes(String(root))
      return name === id || bodies.around(String(name)).includes(id)
    })
  )
}
