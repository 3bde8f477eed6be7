import { ports } from '../../workflows/effects/index.ts'
import type { EffectClass } from '../../workflows/language/definition.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import type { ApiConfig } from '../config.ts'

export interface WarnedNode {
  type: string
  title: string
  effect: EffectClass
  config: Record<string, unknown>
}

/** Whether a node changes data outside of the service or sends data there. */
export const reachesOutside = ({ type, effect }: WarnedNode): boolean =>
  effect === 'external' && findNodeType(type)?.outputOnly({}) !== true

/** The environment variables of the service without which every node of a type fails. */
export const neededVariables = (type: string): string[] =>
  (findNodeType(type)?.effects ?? []).flatMap((effect) => ports[effect].variables ?? [])

/**
 * A warning for each unset variable of the service that the nodes need, with the nodes that fail or do less without it.
 */
export function variableWarnings(nodes: WarnedNode[], config: ApiConfig): string[] {
  const values: Readonly<Record<string, unknown>> = config
  const titles = new Map<string, string[]>()
  const add = (variable: string, what: string, title: string) => {
    if (values[variable] !== undefined) return
    const start = `The service has no ${variable}, so these nodes ${what}`
    titles.set(start, [...(titles.get(start) ?? []), title])
  }
  for (const { type, title, config } of nodes) {
    for (const variable of neededVariables(type)) add(variable, 'fail', title)
    const optional = findNodeType(type)?.optionalVariables
    if (optional?.isUsed(config))
      for (const variable of optional.names) add(variable, optional.without, title)
  }
  return [...titles].map(([start, found]) => `${start}: ${found.join(', ')}.`)
}
