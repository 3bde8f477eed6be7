import { NodeError } from '../workflows/nodes/define.ts'

/** Of one value, as JSON. */
const MAX_BYTES = 1024 * 1024

/** A value of a node as jsonb takes it. Throws NodeError `output_too_large`. */
export function capped(value: unknown): unknown {
  const json = JSON.stringify(value ?? null)
  if (json.length > MAX_BYTES / 4 && Buffer.byteLength(json) > MAX_BYTES)
    throw new NodeError('output_too_large', `The node's data is larger than ${MAX_BYTES / 1024} KiB.`)
  return isBad(json) ? replaceBad(JSON.parse(json)) : (value ?? null)
}

/** The same value without NUL and half surrogate pairs, which jsonb refuses. */
export function storable<T>(value: T): T {
  const json = JSON.stringify(value)
  return isBad(json) ? (replaceBad(JSON.parse(json)) as T) : value
}

const isBad = (json: string) => /\\u0000|\\ud[89a-f]/i.test(json)

function replaceBad(part: unknown): unknown {
  if (typeof part === 'string') return text(part)
  if (Array.isArray(part)) return part.map(replaceBad)
  if (typeof part !== 'object' || part === null) return part
  return Object.fromEntries(Object.entries(part).map(([key, item]) => [text(key), replaceBad(item)]))
}

const text = (part: string) => part.replaceAll(/\p{Surrogate}/gu, '\uFFFD').replaceAll('\0', '\uFFFD')
