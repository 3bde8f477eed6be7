import type { Problem } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import { testedBy } from './check-references.ts'
import type { Lowered } from './lower.ts'
import { renderedTexts } from './rendered-texts.ts'

/** The members that say how a node has ended. */
const ENDINGS = ['status', 'error', 'handle']

/**
 * Warns about reads of the output of a node that may have failed, and whose `on_error: continue` goes on without one. No
 * warning if the definition reads anywhere how the node has ended.
 */
export function checkContinued(lowered: Lowered): Problem[] {
  const { definition, texts } = lowered
  const continued = new Set(
    definition.nodes.filter(({ on_error }) => on_error === 'continue').map(({ id }) => id),
  )
  if (continued.size === 0) return []
  const found = new Map<string, Problem>()
  for (const { text, path, node, configKey } of renderedTexts(lowered)) {
    for (const reference of texts.readable(text)) {
      const [root, id = '', member = 'output'] = reference.path.map(String)
      if (root !== 'nodes' || !continued.has(id)) continue
      if (ENDINGS.includes(member)) {
        continued.delete(id)
        continue
      }
      const compares = configKey === undefined || findNodeType(node?.type ?? '')?.compared
      if (!node || compares || reference.optional || reference.tested || found.has(id)) continue
      if (testedBy(node, texts).has(`nodes.${id}`)) continue
      found.set(id, {
        code: 'maybe_not_upstream',
        message: `${id} may fail, and \`on_error: continue\` then goes on: its output is null here`,
        hint: 'add a default: {{ … | default: "" }}',
        path: path(),
        node_id: node.id,
      })
    }
  }
  return [...found].flatMap(([id, problem]) => (continued.has(id) ? [problem] : []))
}
