import type { Edge, NodeSpec } from '../../workflows/language/definition.ts'

/** Nodes and edges of definitions in tests. */

export const edge = (from: string, to: string, handle = 'success'): Edge => ({ from, handle, to })

export const set = (id: string, value: unknown = id): NodeSpec => ({
  id,
  type: 'set_fields',
  config: { fields: { value } },
})

export const delay = (id: string, time: string): NodeSpec => ({ id, type: 'delay', config: { for: time } })

/** A node that calls a server; the worker's `http` defines the response. */
export const call = (id: string, more: Partial<NodeSpec> = {}): NodeSpec => ({
  id,
  type: 'api_request',
  config: { method: 'POST', url: 'https://example.com/' },
  ...more,
})

/** A loop over the input `items`. */
export const each = (config: Record<string, unknown> = {}): NodeSpec => ({
  id: 'each',
  type: 'for_each',
  config: { items: '{{ inputs.items }}', ...config },
})
