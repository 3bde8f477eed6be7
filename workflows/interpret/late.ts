import { explained, type RenderLimits, render, type Scope } from '../language/expressions/liquid.ts'
import { hintAt } from '../language/expressions/missing-member.ts'
import { references } from '../language/expressions/references.ts'
import { NodeError } from '../language/node-error.ts'
import type { Authored, NodeType } from '../nodes/define.ts'
import { capped } from './storable.ts'

/** Bytes of the values that the late texts of a node may read: they are stored with the wait. */
const MAX_BYTES = 65_536

/**
 * The config with which a node starts: every placeholder rendered, except in the late values. Throws NodeError.
 */
export function renderConfig(
  type: NodeType,
  config: Authored,
  scope: Scope,
  limits?: Partial<RenderLimits>,
): Record<string, unknown> {
  const { now, late } = splitLate(type, config)
  return { ...(render(now, scope, limits) as Authored), ...late }
}

/**
 * Splits a config into the values that are rendered before the node runs, and those that it gets as written. Leaves
 * out the values that a loop renders for each item.
 */
export function splitLate(type: NodeType, config: Authored): { now: Authored; late: Authored } {
  const perItem = type.perItem(config)
  // The interpreter renders the values of `perItem` of a loop; any other node renders its own.
  const isLate = ([name]: [string, unknown]) =>
    Object.hasOwn(type.late, name) ||
    type.verbatim.includes(name) ||
    (type.body === undefined && perItem.includes(name))
  const entries = Object.entries(config)
  return {
    now: Object.fromEntries(entries.filter((entry) => !isLate(entry) && !perItem.includes(entry[0]))),
    late: Object.fromEntries(entries.filter(isLate)),
  }
}

/**
 * The part of `scope` that the late texts of a node read, to render them later, in the time zone that the organization
 * has then. Throws NodeError `placeholder_error` if a value is missing, or a text does not parse.
 */
export function capture(type: NodeType, config: Authored, scope: Scope): Scope {
  const paths = Object.entries(type.late).flatMap(([name, root]) => {
    const text = config[name]
    if (typeof text !== 'string') return []
    // The config of a node test is not validated before.
    return explained(text, `/${name}`, () => references(text))
      .filter(({ path: [first] }) => first !== root)
      .flatMap(({ path, optional }) => pathTo(scope, path, optional, text))
  })
  const values: Scope = {}
  const taken = new Set<string>()
  for (const path of paths.sort((a, b) => a.keys.length - b.keys.length)) {
    const isTaken = path.keys.some((_, index) => taken.has(JSON.stringify(path.keys.slice(0, index + 1))))
    if (isTaken) continue
    taken.add(JSON.stringify(path.keys))
    place(values, path.keys, path.value)
  }
  return capped(values, MAX_BYTES) as Scope
}

/** The value at a path, which ends at a list at the latest. Empty if an optional value is missing. */
function pathTo(
  scope: Scope,
  path: (string | number)[],
  optional: boolean,
  text: string,
): { keys: string[]; value: unknown }[] {
  const keys: string[] = []
  let value: unknown = scope
  for (const key of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) break
    if (!Object.hasOwn(value, key)) {
      if (optional) return []
      const hint = hintAt(path, scope)
      const missing = `${text.slice(0, 200)}: undefined variable: ${path.join('.')}`
      throw new NodeError('placeholder_error', hint === undefined ? missing : `${missing}: ${hint}`)
    }
    value = (value as Record<string, unknown>)[key]
    keys.push(String(key))
  }
  return keys.length > 0 ? [{ keys, value }] : []
}

function place(values: Scope, keys: string[], value: unknown): void {
  let at: Record<string, unknown> = values
  for (const key of keys.slice(0, -1)) {
    if (!Object.hasOwn(at, key)) Object.defineProperty(at, key, { value: {}, ...OWN })
    at = at[key] as Record<string, unknown>
  }
  Object.defineProperty(at, keys.at(-1)!, { value, ...OWN })
}

/** Defines an own property also for a key such as `__proto__`. */
const OWN = { enumerable: true, writable: true, configurable: true }
