import type { NodeSpec } from '../language/definition.ts'
import type { Problem } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'

/**
 * Reports nodes that leave by one of several handles, and would leave by the first one without having decided: a failed
 * condition would be true, a skipped wait would have received something.
 */
export function checkDecisions({ definition, nodePath }: Lowered): Problem[] {
  return definition.nodes.flatMap((node): Problem[] => {
    const decision = decisionOf(node)
    if (!decision) return []
    const { first, skippable } = decision
    const found: Problem[] = []
    if (node.on_error === 'continue')
      found.push({
        code: 'handle_without_decision',
        message: `if ${node.id} fails, \`continue\` would take its handle \`${first}\``,
        path: `${nodePath(node.id)}/on_error`,
        node_id: node.id,
        hint: `remove on_error, and lead on from a failure: \`next: {error: …}\``,
      })
    if (node.when !== undefined && !skippable)
      found.push({
        code: 'handle_without_decision',
        message: `if ${node.id} is skipped by its \`when\`, the run would take its handle \`${first}\``,
        path: `${nodePath(node.id)}/when`,
        node_id: node.id,
        hint: `remove \`when\`: test it in a condition before ${node.id}, whose handles say where each case leads`,
      })
    return found
  })
}

/** The first of several handles of a node; undefined if it has no other besides `error`. */
function decisionOf({ type: name, config }: NodeSpec): { first: string; skippable: boolean } | undefined {
  const type = findNodeType(name)
  const handles = type
    ?.handles(config)
    .filter((handle) => handle.name !== 'error' && handle.name !== type.body)
  const [first, second] = handles ?? []
  // An approval that is not needed counts as given.
  return first && second && { first: first.name, skippable: type?.asksPerson === true }
}
