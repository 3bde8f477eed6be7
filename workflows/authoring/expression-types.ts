import { type Token, TypeGuards, type Value } from 'liquidjs'
import { BY_FIELD } from '../language/expressions/filters.ts'
import { type Expression, treeOf } from '../language/expressions/tree.ts'
import { originOf } from '../language/sample-types.ts'
import {
  BOOLEAN,
  INTEGER,
  isUnknown,
  itemsOf,
  listOf,
  type Member,
  maskOf as maskOfType,
  memberType,
  NULL,
  NUMBER,
  optionsOf,
  TEXT,
  UNKNOWN,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
import type { Operand } from './comparable.ts'
import { comparisonMistake, plainOf, testMistake, textOf, valueMistake } from './comparison-types.ts'
import { argumentProblem } from './filter-arguments.ts'
import { isComputedNull, makesNull, operandMistake, typeAfter } from './filter-types.ts'
import type { Mistake, Segment } from './mistake.ts'
import { pathWithin } from './path-hints.ts'

export interface Reading {
  /** The type of a root, such as `trigger`. */
  rootType(path: readonly Segment[]): { type: ValueType; segments: number }
  report?: ((mistake: Mistake) => void) | undefined
}

/** The type of a placeholder. */
export function typeOfPlaceholder({ initial, filters }: Value, reading: Reading): ValueType {
  return typeAfterAll(treeOf(initial), filters, reading)
}

/** Reports what is wrong in a placeholder. `isTest`: only whether its value holds counts. */
export function checkPlaceholder(placeholder: Value, reading: Reading, isTest = false): void {
  let ofNull: Mistake | undefined
  const report = (mistake: Mistake) => {
    // Null is written only if no later filter replaces it.
    if (mistake.kind === 'null') ofNull ??= mistake
    else reading.report?.(mistake)
  }
  const type = typeOfPlaceholder(placeholder, { ...reading, report })
  if (isTest) note(testMistake(type, writtenIn(placeholder)), reading)
  else if (ofNull && isComputedNull(type)) reading.report?.(ofNull)
}

/** What is written between the braces of a placeholder. */
function writtenIn({ initial }: Value): string {
  const [first] = initial.postfix
  if (!first) return ''
  const begin = first.input.lastIndexOf('{{', first.begin) + 2
  return first.input.slice(begin, first.input.indexOf('}}', begin)).replace(/^-|-$/g, '').trim()
}

const note = (mistake: Mistake | undefined, { report }: Reading) => mistake && report?.(mistake)

/** The type of an expression after its filters. */
function typeAfterAll(
  tree: Expression,
  filters: readonly Pick<Value['filters'][number], 'name' | 'args'>[],
  reading: Reading,
): ValueType {
  let subject: Token | undefined = tree.kind === 'value' ? tree.token : undefined
  return filters.reduce(
    (type, { name, args }) => {
      const after = filtered(type, subject, name, args, reading)
      subject = undefined
      return after
    },
    typeOfTree(tree, reading),
  )
}

function typeOfTree(tree: Expression, reading: Reading): ValueType {
  switch (tree.kind) {
    case 'value':
      return typeOfToken(tree.token, reading)
    case 'not':
      tested(tree.of, reading)
      return BOOLEAN
    case 'and':
    case 'or':
      tested(tree.left, reading)
      tested(tree.right, reading)
      return BOOLEAN
    case 'choice':
      tested(tree.when, reading)
      return unionOf(
        [tree.then, tree.otherwise].map((one) => typeOfTree(one, withoutNullsOf(tree.when, reading))),
      )
    case 'comparison':
      note(comparisonMistake(tree, operandOf(tree.left, reading), operandOf(tree.right, reading)), reading)
      return BOOLEAN
  }
}

/** A choice may have excluded that what its condition reads is null. */
function withoutNullsOf(condition: Expression, { report, ...reading }: Reading): Reading {
  const written = textOf(condition)
  return {
    ...reading,
    report: (mistake) => {
      if (mistake.kind !== 'null' || !written.includes(mistake.of)) report?.(mistake)
    },
  }
}

function tested(tree: Expression, reading: Reading): void {
  note(testMistake(typeOfTree(tree, reading), textOf(tree), plainOf(tree)), reading)
}

function operandOf(tree: Expression, reading: Reading): Operand {
  const type = typeOfTree(tree, reading)
  const literal = plainOf(tree)
  return literal === undefined ? { type } : { type, literal }
}

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
    return typeAfterAll(treeOf(token.initial), token.filters, reading)
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
    if (member.type.mayBeAbsent) report?.({ kind: 'absent', path, at: index })
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

/** The result of a filter. `subject`: what its input is written as. */
function filtered(
  input: ValueType,
  subject: Token | undefined,
  name: string,
  args: readonly Argument[],
  reading: Reading,
): ValueType {
  const tokens = args.map((argument) => (Array.isArray(argument) ? argument[1] : argument))
  const types = tokens.map((token) => typeOfToken(token, reading))
  const problem = argumentProblem(
    name,
    args.flatMap((argument) => (Array.isArray(argument) ? [] : [argument])),
  )
  if (problem) reading.report?.({ kind: 'arguments', ...problem })
  const misused = operandMistake(input, name)
  note(misused, reading)
  const [first, second] = tokens
  const field = first && TypeGuards.isQuotedToken(first) ? first.content : undefined
  const member =
    BY_FIELD.includes(name) && field !== undefined && !misused
      ? fieldType(input, name, field, reading)
      : UNKNOWN
  if (second && TypeGuards.isQuotedToken(second) && TESTS.includes(name))
    note(valueMistake({ type: member }, { type: TEXT, literal: second.content }), reading)
  const operands = [
    { type: input, token: subject },
    ...types.map((type, at) => ({ type, token: tokens[at] })),
  ]
  for (const [at, { type, token }] of operands.entries())
    if (token && TypeGuards.isPropertyAccessToken(token) && makesNull(name, type))
      reading.report?.({ kind: 'null', filter: name, of: token.getText(), isArgument: at > 0 })
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
      report?.({
        kind: 'field',
        filter,
        field,
        key,
        names: found.names,
        within: pathWithin(at, key),
        origin: originOf(at),
      })
      return UNKNOWN
    }
    reportCustom(found, key, report)
    at = found.type
  }
  return at
}
