import { type Problem, pointer } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'

/**
 * Warns about cases that lead nowhere: their branch ends silently. Only for authoring specs: a raw definition cannot
 * state that a branch ends on purpose.
 */
export function checkCases({ definition, ends }: Lowered): Problem[] {
  const led = new Set([...definition.edges, ...ends].map(({ from, handle }) => `${from}:${handle}`))
  return definition.nodes.flatMap(({ id, type, config }): Problem[] => {
    const lost = (findNodeType(type)?.cases(config) ?? []).filter((name) => !led.has(`${id}:${name}`))
    if (lost.length === 0) return []
    return [
      {
        code: 'unconnected_case',
        message: `${lost.slice(0, 10).join(', ')} of ${id} lead${lost.length === 1 ? 's' : ''} nowhere: the run ends there`,
        hint: `add \`${lost.map((name) => `${name}: end`).join(', ')}\` to \`next\` of ${id}, or lead on to a node`,
        path: pointer('nodes', id),
        node_id: id,
        atKey: true,
      },
    ]
  })
}
