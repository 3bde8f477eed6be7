import { NodeError } from '../workflows/nodes/define.ts'
import { toStorable } from '../workflows/storable-text.ts'

/** Of one value, as JSON. */
const MAX_BYTES = 1024 * 1024

/** A value of a node as jsonb takes it. Throws NodeError `output_too_large`. */
export function capped(value: unknown): unknown {
  const json = JSON.stringify(value ?? null)
  if (json.length > MAX_BYTES / 4 && Buffer.byteLength(json) > MAX_BYTES)
    throw new NodeError('output_too_large', `The node's data is larger than ${MAX_BYTES / 1024} KiB.`)
  return isBad(json) ? replaceBad(JSON.parse(json)) : (value ?? null)
}

/** Of the outputs of all nodes of a run together, which every segment holds in memory. */
const MAX_RUN_BYTES = 8 * 1024 * 1024

/** Throws NodeError `run_too_large` where the outputs of a run's nodes, by id, leave no room for another. */
export function requireRoom(nodes: unknown): void {
  if (typeof nodes !== 'object' || nodes === null) return
  const outputs = Object.values(nodes)
  // Each is within its own limit: so few cannot be too many.
  if (outputs.length * MAX_BYTES <= MAX_RUN_BYTES) return
  let left = MAX_RUN_BYTES
  for (const output of outputs) left -= JSON.stringify(output).length
  if (left < 0)
    throw new NodeError(
      'run_too_large',
      `The outputs of the run's nodes are larger than ${MAX_RUN_BYTES / 1024 / 1024} MiB together.`,
    )
}

/** The same value without NUL and half surrogate pairs, which jsonb refuses. */
export function storable<T>(value: T): T {
  const json = JSON.stringify(value)
  return isBad(json) ? (replaceBad(JSON.parse(json)) as T) : value
}

const isBad = (json: string) => /\\u0000|\\ud[89a-f]/i.test(json)

function replaceBad(part: unknown): unknown {
  if (typeof part === 'string') return toStorable(part)
  if (Array.isArray(part)) return part.map(replaceBad)
  if (typeof part !== 'object' || part === null) return part
  return Object.fromEntries(Object.entries(part).map(([key, item]) => [toStorable(key), replaceBad(item)]))
}
