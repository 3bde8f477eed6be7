import type { EffectClass } from '../../workflows/definition/types.ts'
import { ports } from '../../workflows/effects/index.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import type { ApiConfig } from '../config.ts'

export interface WarnedNode {
  type: string
  title: string
  effect: EffectClass
}

/** Whether a node changes something outside of the service, or sends something there. */
export const reachesOutside = ({ type, effect }: WarnedNode): boolean =>
  effect === 'external' && findNodeType(type)?.outputOnly({}) !== true

/** The settings of the service that the nodes need and that are not set, each with the nodes that will fail. */
export function settingWarnings(nodes: WarnedNode[], config: ApiConfig): string[] {
  const values: Readonly<Record<string, unknown>> = config
  const titles = new Map<string, string[]>()
  for (const { type, title } of nodes)
    for (const effect of findNodeType(type)?.effects ?? [])
      for (const setting of ports[effect].settings ?? [])
        if (values[setting] === undefined) titles.set(setting, [...(titles.get(setting) ?? []), title])
  return [...titles].map(
    ([setting, failing]) => `The service has no ${setting}, so these nodes fail: ${failing.join(', ')}.`,
  )
}
