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

/**
 * A warning for each unset setting of the service that the nodes need, with the nodes that fail or do less without it.
 */
export function settingWarnings(nodes: WarnedNode[], config: ApiConfig): string[] {
  const values: Readonly<Record<string, unknown>> = config
  const titles = new Map<string, string[]>()
  const add = (setting: string, what: string, title: string) => {
    if (values[setting] !== undefined) return
    const start = `The service has no ${setting}, so these nodes ${what}`
    titles.set(start, [...(titles.get(start) ?? []), title])
  }
  for (const { type, title, config } of nodes) {
    const { effects = [], optionalSettings: optional } = findNodeType(type) ?? {}
    for (const effect of effects)
      for (const setting of ports[effect].settings ?? []) add(setting, 'fail', title)
    if (optional?.isUsed(config)) for (const setting of optional.names) add(setting, optional.without, title)
  }
  return [...titles].map(([start, found]) => `${start}: ${found.join(', ')}.`)
}
