import { type Token, TypeGuards, type Value } from 'liquidjs'
import { resultOf } from '../language/expressions/filters.ts'
import { OMIT } from '../language/expressions/omitted.ts'
import { type Expression, treeOf } from '../language/expressions/tree.ts'
import { originOf } from '../language/sample-types.ts'
import type { Origin } from '../language/shapes.ts'
import {
  allowedValues,
  BOOLEAN,
  INTEGER,
  isUnknown,
  itemsOf,
  kindsOf,
  listOf,
  type Member,
  maskOf as maskOfType,
  members,
  memberType,
  NULL,
  NUMBER,
  notNull,
  optionsOf,
  TEXT,
  UNKNOWN,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
import { argumentProblem } from './filter-arguments.ts'

/** What is wrong in an expression, in terms of its types. `origin`: the type is only likely. */
export type Mistake = { origin?: Origin | undefined } & MistakeKind

/** `path`: the value at `path` has no such member. `names`: those it has. */
type MistakeKind =
  | {
      kind: 'path'
      path: readonly Segment[]
      at: number
      what: string
      names: readonly string[]
      type: ValueType
    }
  /** A filter names a field that the items of its list do not have. */
  | { kind: 'field'; filter: string; field: string; key: string; names: readonly string[] }
  /** A value is compared with one that it can never have. */
  | { kind: 'comparison'; value: string; allowed: readonly string[] }
  /** The organization has no such custom field. */
  | { kind: 'custom'; name: string; of: string; names: readonly string[] }
  /** A filter gets too few or too many arguments, or a wrong one. */
  | { kind: 'arguments'; problem: string }
  /** The custom field is sensitive: its mask is read. */
  | { kind: 'mask'; name: string; of: string }
  /** A filter that computes gets a list or a mapping. */
  | { kind: 'operand'; filter: string; what: string }

/** A segment of a path; undefined if it is computed. */
export type Segment = string | number | undefined

export interface Reading {
  /** The type of a root, such as `trigger`. */
  rootType(path: readonly Segment[]): { type: ValueType; segments: number }
  report?: ((mistake: Mistake) => void) | undefined
}

/** The type of a placeholder. */
export function typeOfPlaceholder({ initial, filters }: Value, reading: Reading): ValueType {
  return filters.reduce(
    (type, { name, args }) => filtered(type, name, args, reading),
    typeOfTree(treeOf(initial), reading),
  )
}

function typeOfTree(tree: Expression, reading: Reading): ValueType {
  switch (tree.kind) {
    case 'value':
      return typeOfToken(tree.token, reading)
    case 'not':
      typeOfTree(tree.of, reading)
      return BOOLEAN
    case 'and':
    case 'or':
      typeOfTree(tree.left, reading)
      typeOfTree(tree.right, reading)
      return BOOLEAN
    case 'choice':
      typeOfTree(tree.when, reading)
      return unionOf([typeOfTree(tree.then, reading), typeOfTree(tree.otherwise, reading)])
    case 'comparison':
      compared(tree, reading)
      return BOOLEAN
  }
}

function compared(tree: Expression & { kind: 'comparison' }, reading: Reading): void {
  const [left, right] = [typeOfTree(tree.left, reading), typeOfTree(tree.right, reading)]
  const [a, b] = [literalOf(tree.left), literalOf(tree.right)]
  if (tree.operator === '==' || tree.operator === '!=') {
    if (b !== undefined) requirePossible(b, left, reading)
    if (a !== undefined) requirePossible(a, right, reading)
  }
  const isList = optionsOf(left).every(({ type }) => type === 'array')
  if (tree.operator === 'contains' && b !== undefined && isList) requirePossible(b, itemsOf(left), reading)
}

function requirePossible(value: string, type: ValueType, { report }: Reading): void {
  const allowed = allowedValues(type)
  if (allowed && !allowed.includes(value))
    report?.({ kind: 'comparison', value, allowed, origin: originOf(type) })
}

/** The text that an expression is, in quotes. */
const literalOf = (tree: Expression): string | undefined =>
  tree.kind === 'value' && TypeGuards.isQuotedToken(tree.token) ? tree.token.content : undefined

const LITERALS: Record<string, ValueType> = {
  true: BOOLEAN,
  false: BOOLEAN,
  nil: NULL,
  null: NULL,
}

function typeOfToken(token: Token | undefined, reading: Reading): ValueType {
  if (!token) return UNKNOWN
  if (TypeGuards.isQuotedToken(token)) return TEXT
  if (TypeGuards.isNumberToken(token)) return NUMBER
  if (TypeGuards.isLiteralToken(token)) return LITERALS[token.getText()] ?? UNKNOWN
  if (TypeGuards.isRangeToken(token)) {
    typeOfToken(token.lhs, reading)
    typeOfToken(token.rhs, reading)
    return listOf(INTEGER)
  }
  if (TypeGuards.isFilteredValueToken(token))
    return token.filters.reduce(
      (type, { name, args }) => filtered(type, name, args, reading),
      typeOfTree(treeOf(token.initial), reading),
    )
  if (!TypeGuards.isPropertyAccessToken(token)) return UNKNOWN
  const segments = token.props.map((segment): Segment => {
    const known =
      TypeGuards.isWordToken(segment) ||
      TypeGuards.isQuotedToken(segment) ||
      TypeGuards.isNumberToken(segment)
    if (known) return segment.content
    typeOfToken(segment, reading)
    return undefined
  })
  if (token.variable) {
    const inner = typeOfToken(token.variable, reading)
    return follow(inner, segments, 0, reading)
  }
  const root = reading.rootType(segments)
  return follow(root.type, segments, root.segments, reading)
}

/** The type at the end of a path. Reports the first segment that is wrong; the type is then unknown. */
function follow(type: ValueType, path: readonly Segment[], from: number, { report }: Reading): ValueType {
  let at = type
  for (let index = from; index < path.length; index++) {
    if (isUnknown(at)) return UNKNOWN
    const key = path[index]
    if (key === undefined) {
      if (!optionsOf(at).every((option) => option.type === 'array')) return UNKNOWN
      at = itemsOf(at)
      continue
    }
    const member = memberType(at, key)
    if (!('type' in member)) {
      report?.({
        kind: 'path',
        path,
        at: index,
        what: member.what,
        names: member.names,
        type: at,
        origin: originOf(at),
      })
      return UNKNOWN
    }
    reportCustom(member, String(key), report)
    at = member.type
  }
  return at
}

function reportCustom(
  member: Extract<Member, { type: ValueType }>,
  name: string,
  report: Reading['report'],
): void {
  const { customFieldOf, names = [], type } = member
  if (customFieldOf !== undefined) report?.({ kind: 'custom', name, of: customFieldOf, names })
  const maskOf = maskOfType(type)
  if (maskOf !== undefined) report?.({ kind: 'mask', name, of: maskOf })
}

type Argument = Value['filters'][number]['args'][number]

const BY_FIELD = [
  'map',
  'where',
  'reject',
  'find',
  'find_index',
  'has',
  'sum',
  'sort',
  'sort_natural',
  'group_by',
]

/** The result of a filter. */
function filtered(input: ValueType, name: string, args: readonly Argument[], reading: Reading): ValueType {
  const tokens = args.map((argument) => (Array.isArray(argument) ? argument[1] : argument))
  const types = tokens.map((token) => typeOfToken(token, reading))
  const problem = argumentProblem(
    name,
    args.flatMap((argument) => (Array.isArray(argument) ? [] : [argument])),
  )
  if (problem !== undefined) reading.report?.({ kind: 'arguments', problem })
  const [first, second] = tokens
  const field = first && TypeGuards.isQuotedToken(first) ? first.content : undefined
  const member =
    BY_FIELD.includes(name) && field !== undefined ? fieldType(input, name, field, reading) : UNKNOWN
  if (second && TypeGuards.isQuotedToken(second) && TESTS.includes(name))
    requirePossible(second.content, member, reading)
  if (resultOf(name) === 'computed') requireScalar(input, name, reading)
  return typeAfter(name, input, types, member)
}

const TESTS = ['where', 'reject', 'find', 'find_index', 'has']

/** The type of a field of a list's items, as the filters that take a name read it. */
function fieldType(input: ValueType, filter: string, field: string, { report }: Reading): ValueType {
  // A value that is no list counts as a list with this one item.
  const items = unionOf(optionsOf(input).map((one) => (one.type === 'array' ? (one.items ?? UNKNOWN) : one)))
  let at = items
  for (const key of field.split('.')) {
    if (isUnknown(at) || optionsOf(at).length === 0) return UNKNOWN
    const found = memberType(at, key)
    if (!('type' in found)) {
      report?.({ kind: 'field', filter, field, key, names: found.names, origin: originOf(at) })
      return UNKNOWN
    }
    reportCustom(found, key, report)
    at = found.type
  }
  return at
}

function requireScalar(input: ValueType, filter: string, { report }: Reading): void {
  const kinds = kindsOf(input)
  if (kinds === undefined || kinds.length === 0) return
  if (kinds.every((kind) => kind === 'array' || kind === 'object'))
    report?.({
      kind: 'operand',
      filter,
      what: kinds[0] === 'array' ? 'a list' : 'a mapping',
      origin: originOf(input),
    })
}

function typeAfter(name: string, input: ValueType, args: ValueType[], member: ValueType): ValueType {
  if (name === 'default') return unionOf([notNull(input), args[0] ?? UNKNOWN])
  if (name === OMIT) return notNull(input)
  const result = resultOf(name)
  if (result === 'text') return TEXT
  if (result === 'count') return INTEGER
  if (result === 'computed') return computed([input, ...args])
  if (name === 'has') return BOOLEAN
  if (name === 'split') return listOf(TEXT)
  if (name === 'sum') return computed([member === UNKNOWN ? itemsOf(input) : member])
  if (name === 'map') return listOf(member)
  const isList = optionsOf(input).every(({ type }) => type === 'array')
  if (!isList) return UNKNOWN
  if (result === 'same list') return notNull(input)
  if (name === 'first' || name === 'last' || name === 'find') return unionOf([itemsOf(input), NULL])
  if (name === 'push' || name === 'unshift') return listOf(unionOf([itemsOf(input), args[0] ?? UNKNOWN]))
  if (name === 'concat') return listOf(unionOf([itemsOf(input), itemsOf(args[0] ?? UNKNOWN)]))
  if (name === 'group_by') return listOf(members({ name: member, items: notNull(input) }))
  return UNKNOWN
}

/** A number, or a text where an operand may be one. */
function computed(operands: readonly ValueType[]): ValueType {
  const kinds = operands.map(kindsOf)
  return kinds.every((names) => names?.every((name) => name === 'number'))
    ? NUMBER
    : { anyOf: [NUMBER, TEXT] }
}
