import type { Definition } from '../language/definition.ts'
import type { Problem } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Bodies } from './loops.ts'
import type { Lowered } from './lower.ts'

/** Warns about nodes that answer a sender where none waits, or after another one has answered. */
export function checkResponses({ definition, nodePath }: Lowered, bodies: Bodies): Problem[] {
  const nodes = definition.nodes.filter(({ type }) => findNodeType(type)?.responds)
  const { trigger } = definition
  return nodes.flatMap(({ id, type }): Problem[] => {
    const where = { path: nodePath(id), node_id: id }
    if (trigger.type !== 'webhook')
      return [
        {
          code: 'response_without_webhook',
          message: `${id} answers the sender of an incoming webhook, but the trigger is ${trigger.type}: nobody waits for it`,
          hint: 'if an incoming webhook selects the workflow, say so: `trigger: webhook`; what other runs result in are their `outputs`',
          ...where,
        },
      ]
    const [loop] = bodies.around(id)
    const earlier = nodes.find((one) => one.id !== id && leadsTo(definition, one.id, id))?.id
    if (loop === undefined && earlier === undefined) return []
    return [
      {
        code: 'second_response',
        message:
          loop === undefined
            ? `${id} runs after ${earlier}, which has answered: only the first answer of a run counts, and ${id} fails`
            : `${id} is in the body of ${loop}: only the first answer of a run counts, and each further one fails`,
        hint:
          loop === undefined
            ? `lead each path to one ${type} only`
            : `answer after the loop, with the results: nodes.${loop}.output`,
        ...where,
      },
    ]
  })
}

/** Whether a path leads from a node, once it has succeeded, to another one. */
function leadsTo({ edges }: Definition, from: string, to: string): boolean {
  const reached = new Set<string>()
  const queue = edges.filter((edge) => edge.from === from && edge.handle !== 'error').map((edge) => edge.to)
  for (const id of queue) {
    if (id === to) return true
    if (reached.has(id)) continue
    reached.add(id)
    queue.push(...edges.filter((edge) => edge.from === id).map((edge) => edge.to))
  }
  return false
}
