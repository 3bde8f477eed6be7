import type { Edge } from '../language/definition.ts'
import type { Problem } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import { type Bodies, isRepeat } from './loops.ts'
import type { Lowered } from './lower.ts'

/**
 * Warns of nodes in the body of a loop that end the whole run as completed, without saying so: their authors meant to go
 * on with the next item. A status or outputs of the run say that its end is meant.
 */
export function checkEndsInLoops({ definition, nodePath }: Lowered, bodies: Bodies): Problem[] {
  const { nodes, edges } = definition
  const byId = new Map(nodes.map((node) => [node.id, node]))
  return nodes.flatMap(({ id, type, config }): Problem[] => {
    const [loop] = bodies.around(id)
    const { endsWith } = findNodeType(type) ?? {}
    if (loop === undefined || !endsWith || config.status !== undefined || endsWith(config) !== undefined)
      return []
    const what = isRepeat(byId.get(loop)!) ? 'turn' : 'item'
    const into = edges.find(({ from, to }) => to === id && from !== loop)
    return [
      {
        code: 'end_in_loop',
        message: `${id} ends the whole run as completed at the first ${what} that reaches it: the others of ${loop}, and what follows it, do not run`,
        path: `${nodePath(id)}/type`,
        node_id: id,
        hint: `${into ? `to end only the ${what}, ${instead(into)}` : `lead to what the ${what} is to do instead`}; to end the run, set \`status: completed\` in the config of ${id}`,
      },
    ]
  })
}

/** What to write in the node before, so that nothing follows it. */
const instead = ({ from, handle, to }: Edge): string => {
  const end = handle === 'success' ? 'end' : `{${JSON.stringify(handle)}: end}`
  return `write \`next: ${end}\` in ${from}, without ${to}`
}
