import { NodeError } from '../language/node-error.ts'
import { isObject } from '../shared/is-object.ts'
import { VALUE_DEPTH } from '../shared/limits.ts'
import type { Limits } from '../shared/run-limits.ts'
import { toStorable } from '../shared/storable-text.ts'

/**
 * A value of a node as jsonb accepts it. Throws NodeError `output_too_large` above `maxBytes` of JSON,
 * `output_too_deep` above VALUE_DEPTH levels.
 */
export const capped = (value: unknown, maxBytes: number): unknown => measured(value, maxBytes).value

/** The same value, and its characters as JSON. */
export function measured(value: unknown, maxBytes: number): { value: unknown; characters: number } {
  // A large value that is referenced many times is small in memory: its size is checked before it becomes JSON.
  if (charactersWithin(value, maxBytes, VALUE_DEPTH) < 0) throw tooLarge(maxBytes)
  const json = JSON.stringify(value ?? null)
  // A UTF-16 unit takes at most 3 bytes of UTF-8.
  if (json.length > maxBytes / 3 && Buffer.byteLength(json) > maxBytes) throw tooLarge(maxBytes)
  return { value: isBad(json) ? replaceBad(JSON.parse(json)) : (value ?? null), characters: json.length }
}

const tooLarge = (maxBytes: number) =>
  new NodeError('output_too_large', `The node's data is larger than ${maxBytes / 1024} KiB.`)

/**
 * The budget minus the characters of a value's strings and keys; negative if that exceeds it. Throws NodeError
 * `output_too_deep` if the value has more than `levels` levels.
 */
function charactersWithin(value: unknown, budget: number, levels: number): number {
  if (typeof value === 'string') return budget - value.length
  if (typeof value !== 'object' || value === null) return budget - 1
  if (levels === 0)
    throw new NodeError('output_too_deep', `The node's data is nested deeper than ${VALUE_DEPTH} levels.`)
  let left = budget
  const keys = Array.isArray(value) ? undefined : Object.keys(value)
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value)
  for (const [index, member] of members.entries()) {
    if (member === undefined) continue
    left = charactersWithin(member, left - (keys?.[index]?.length ?? 0), levels - 1)
    if (left < 0) break
  }
  return left
}

/** Throws NodeError `run_too_large` if the outputs of a run's nodes leave no room for another one. */
export function requireRoom(nodes: unknown, limits: Pick<Limits, 'valueBytes' | 'runBytes'>): void {
  if (typeof nodes !== 'object' || nodes === null) return
  const outputs = Object.values(nodes)
  // Each output is within its own limit, so these few cannot exceed the total.
  if (outputs.length * limits.valueBytes <= limits.runBytes) return
  let left = limits.runBytes
  for (const result of outputs)
    left -= sizeOf(isObject(result) && 'output' in result ? result.output : result)
  if (left < 0)
    throw new NodeError(
      'run_too_large',
      `The outputs of all nodes of the run are larger than ${limits.runBytes / 1024 / 1024} MiB in total.`,
    )
}

/**
 * The size of each output, which never changes. With 2,000 nodes, computing all sizes for each node takes a fifth of
 * the work of a run.
 */
const sizes = new WeakMap<object, number>()

function sizeOf(output: unknown): number {
  if (typeof output !== 'object' || output === null) return JSON.stringify(output ?? null).length
  const size = sizes.get(output) ?? JSON.stringify(output).length
  sizes.set(output, size)
  return size
}

/** The same value without NUL and lone surrogates, which jsonb refuses. */
export function storable<T>(value: T): T {
  const json = JSON.stringify(value)
  return isBad(json) ? (replaceBad(JSON.parse(json)) as T) : value
}

const isBad = (json: string) => json.includes('\\u') && /\\u0000|\\ud[89a-f]/i.test(json)

function replaceBad(part: unknown): unknown {
  if (typeof part === 'string') return toStorable(part)
  if (Array.isArray(part)) return part.map(replaceBad)
  if (typeof part !== 'object' || part === null) return part
  return Object.fromEntries(Object.entries(part).map(([key, item]) => [toStorable(key), replaceBad(item)]))
}
