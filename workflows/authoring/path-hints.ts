import { meantBy, writeInstead } from '../language/problems.ts'
import { pathText } from '../language/reference-hints.ts'
import { memberType, optionsOf, type ValueType } from '../language/value-types.ts'
import { kindNames, RECORD_KINDS } from '../shared/record-kinds.ts'
import type { Segment } from './mistake.ts'

/** What to write instead of a path into a value that has no such member. */
export interface WrongPath {
  path: readonly Segment[]
  /** The segment that is wrong. */
  at: number
  /** The members of the value before it. */
  names: readonly string[]
  /** The type of the value before it. */
  type: ValueType
}

/** The hint for a wrong path; undefined if what was meant is not known. */
export function correction({ path, at, names, type }: WrongPath): string | undefined {
  const key = String(path[at])
  const before = known(path.slice(0, at))
  const rest = known(path.slice(at + 1))
  const related = relatedHint(before, key, rest, names)
  if (related !== undefined) return related
  const { better, consumed = 0 } = betterPath(type, key, names, path[at + 1]) ?? {}
  if (better === undefined) return undefined
  const written = [key, ...rest.slice(0, consumed)]
  if (path.slice(0, at).includes(undefined))
    return writeInstead(pathText(['', ...better]), pathText(['', ...written]))
  return writeInstead(
    pathText([...before, ...better, ...rest.slice(consumed)]),
    pathText([...before, key, ...rest]),
  )
}

/** Up to the first computed segment. */
export function known(path: readonly Segment[]): (string | number)[] {
  const end = path.indexOf(undefined)
  return path.slice(0, end < 0 ? undefined : end) as (string | number)[]
}

/** For `record.company.name`: the record has only the id of the other one, which a node gets. */
function relatedHint(
  before: readonly (string | number)[],
  key: string,
  rest: readonly (string | number)[],
  names: readonly string[],
): string | undefined {
  const id = `${key}_id`
  if (!names.includes(id)) return undefined
  const path = pathText([...before, id])
  if (rest.length === 0) return writeInstead(path, pathText([...before, key]))
  const kind = kindNames.find((name) => RECORD_KINDS[name] === key)
  const get = kind ? `operation: get, entity: ${kind}` : 'operation: get'
  return `read it from a node before: {type: ${kind ? 'crm_manager' : 'people'}, config: {${get}, id: "{{ ${path} }}"}}`
}

/**
 * Names of a value around the one that is meant. Any other name between two names, such as `owner` in
 * `record.owner.name`, has a meaning of its own: without it, the path would read something else.
 */
const WRAPPERS = [
  'record',
  'data',
  'output',
  'result',
  'value',
  'fields',
  'properties',
  'attributes',
  'item',
  'json',
]

/** What was most likely meant by a name that a value does not have, and how many segments after it that replaces. */
function betterPath(
  type: ValueType,
  key: string,
  names: readonly string[],
  next: Segment,
): { better: (string | number)[]; consumed?: number } | undefined {
  const within = memberWithin(type, key)
  if (within) return { better: within }
  // A field of a group is named by its whole path.
  const dotted = `${key}.${next}`
  if (next !== undefined && names.includes(dotted)) return { better: [dotted], consumed: 1 }
  const meant = meantBy(key, names)
  if (meant !== undefined) return { better: [meant] }
  // A near name of the items of a list.
  const items = optionsOf(type).find((option) => option.type === 'array')?.items
  const found = items && memberType(items, key)
  const near = found && 'names' in found ? meantBy(key, found.names) : undefined
  if (near !== undefined) return { better: [0, near] }
  if (next === undefined) return undefined
  // A segment too many: `output.record.id` of an output that is the record.
  if (WRAPPERS.includes(key) && has(type, String(next))) return { better: [] }
  // Another member that has what is read after it.
  const other = memberWithin(type, String(next))
  return other && { better: other.slice(0, -1) }
}

/** The path to a member of that name within a value: in its items, or in one of its own members. */
function memberWithin(type: ValueType, key: string): (string | number)[] | undefined {
  for (const option of optionsOf(type)) {
    if (option.items && has(option.items, key)) return [0, key]
    for (const [name, member] of Object.entries(option.properties ?? {})) {
      if (has(member, key)) return [name, key]
      const items = optionsOf(member).find((one) => one.type === 'array')?.items
      if (items && has(items, key)) return [name, 0, key]
    }
  }
  return undefined
}

/** The path to a member of that name in a member that is a mapping: `output.x` of the items of a loop. */
export function pathWithin(type: ValueType, key: string): string | undefined {
  const within = memberWithin(type, key)
  return within?.every((segment) => typeof segment === 'string') ? within.join('.') : undefined
}

const has = (type: ValueType, key: string): boolean =>
  optionsOf(type).some((option) => Object.hasOwn(option.properties ?? {}, key))
