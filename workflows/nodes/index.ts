import { apiRequest } from './api-request.ts'
import { condition } from './condition.ts'
import { crmManager } from './crm-manager.ts'
import type { Handle, NodeType } from './define.ts'
import { delay } from './delay.ts'
import { emitEvent } from './emit-event.ts'
import { setFields } from './set-fields.ts'
import { stop } from './stop.ts'
import { switchNode } from './switch.ts'

/** Every node type, by name. To add one: its file and a line here. */
export const nodeTypes: Record<string, NodeType> = byType([
  crmManager,
  condition,
  switchNode,
  setFields,
  delay,
  apiRequest,
  emitEvent,
  stop,
])

/** The node type of that name; undefined for names such as `constructor`, too. */
export function findNodeType(type: string): NodeType | undefined {
  return Object.hasOwn(nodeTypes, type) ? nodeTypes[type] : undefined
}

/** A node's handles with `error` added where it can fail. The first is where it leaves by default. */
export function handlesOf(type: NodeType, config: Record<string, unknown>): Handle[] {
  const handles = type.handles(config)
  if (type.fallible === false) return handles
  return [...handles, { name: 'error', description: 'It failed; `nodes.<id>.error` says why.' }]
}

function byType(types: NodeType[]): Record<string, NodeType> {
  return Object.fromEntries(types.map((type) => [type.type, type]))
}
