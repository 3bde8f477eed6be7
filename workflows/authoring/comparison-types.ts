import { type Token, TypeGuards } from 'liquidjs'
import type { Expression } from '../language/expressions/tree.ts'
import { writeInstead } from '../language/problems.ts'
import { originOf } from '../language/sample-types.ts'
import {
  allowedValues,
  itemsOf,
  kindsOf,
  mayBeNull,
  optionsOf,
  type ValueType,
} from '../language/value-types.ts'
import { alwaysTrue, canBeEqual, type Operand, orderProblem } from './comparable.ts'
import type { Mistake } from './mistake.ts'

type Comparison = Expression & { kind: 'comparison' }

/** What is wrong with a comparison of two values of these types; undefined if nothing is known to be. */
export function comparisonMistake(tree: Comparison, left: Operand, right: Operand): Mistake | undefined {
  const origin = originOf(left.type) ?? originOf(right.type)
  const { operator } = tree
  const constant = constantMistake(left, right)
  if (constant) return constant
  if (operator === '==' || operator === '!=')
    return (
      impossibleName(left, right) ??
      (canBeEqual(left, right)
        ? undefined
        : { kind: 'incomparable', origin, ...neverEqual(tree, left, right) })
    )
  if (operator === 'contains') return containsMistake(left, right)
  const found = orderProblem(left, right)
  return found && { kind: 'incomparable', origin, ...withoutOrder(tree, found, left, right) }
}

/** A day as people write it, such as 31.01.2026. */
export const LOCAL_DAY = /^\s*\d{1,2}[./]\d{1,2}[./]\d{2,4}/

/** The mistakes that the literals of a comparison tell, whatever the types are. */
function constantMistake(left: Operand, right: Operand): Mistake | undefined {
  if (left.literal !== undefined && right.literal !== undefined)
    return {
      kind: 'incomparable',
      problem: 'both values are written plainly, so that the comparison has always the same result',
      hint: 'a path is written without quotes, a text with them: `trigger.record.stage == "won"`',
    }
  const day = [left.literal, right.literal].find((one) => typeof one === 'string' && LOCAL_DAY.test(one))
  if (day === undefined) return undefined
  return {
    kind: 'incomparable',
    problem: `${JSON.stringify(day)} is compared as a text, not as a day`,
    hint: 'write the day as 2026-01-31; a node that formats dates reads other forms (`read_as: dmy`)',
  }
}

function containsMistake(left: Operand, right: Operand): Mistake | undefined {
  const origin = originOf(left.type)
  if (isList(left.type)) {
    const items = { type: itemsOf(left.type) }
    const problem = `the items are ${shown(items)}, and never ${shown(right)}`
    return (
      impossibleName(items, right) ??
      (canBeEqual(items, right) ? undefined : { kind: 'incomparable', origin, problem })
    )
  }
  if (!kindsAre(left.type, ['number', 'boolean', 'object'])) return undefined
  return {
    kind: 'incomparable',
    origin,
    problem: `contains searches a text or a list, but gets ${shown(left)}`,
  }
}

/** The mistake that a value of a list's items can never be what a filter such as `where` names. */
export function valueMistake(value: Operand, wanted: Operand): Mistake | undefined {
  const name = impossibleName(value, wanted)
  if (name || canBeEqual(value, wanted)) return name
  const problem = isList(value.type)
    ? 'the field is a list, which is never equal to one value'
    : `the field is ${shown(value)}, and never ${shown(wanted)}`
  return { kind: 'incomparable', problem, origin: originOf(value.type) }
}

/** The mistake that a text is none of the names that a value can have. */
function impossibleName(left: Operand, right: Operand): Mistake | undefined {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    if (typeof one.literal !== 'string' || (one.literal === '' && mayBeNull(other.type))) continue
    const allowed = allowedValues(other.type)
    if (allowed && !allowed.includes(one.literal))
      return { kind: 'comparison', value: one.literal, allowed, origin: originOf(other.type) }
  }
  return undefined
}

/** The mistake that a value is tested which always holds. `literal`: it is a text in quotes. */
export function testMistake(type: ValueType, written: string, literal?: unknown): Mistake | undefined {
  if (typeof literal === 'string')
    return {
      kind: 'incomparable',
      problem: `the text ${written.slice(0, 50)} alone ${literal === '' ? 'never' : 'always'} holds`,
      hint: `compare each value: \`x == "a" or x == "b"\`, \`x contains "a" and x contains "b"\``,
    }
  const what = alwaysTrue(type)
  return what === undefined ? undefined : { kind: 'always', what, written, origin: originOf(type) }
}

const isList = (type: ValueType) =>
  optionsOf(type).length > 0 && optionsOf(type).every((one) => one.type === 'array')

/** Whether a value is of these kinds only. */
const kindsAre = (type: ValueType, wanted: readonly string[]) => {
  const kinds = kindsOf(type)
  return kinds !== undefined && kinds.length > 0 && kinds.every((kind) => wanted.includes(kind))
}

function neverEqual(tree: Expression & { kind: 'comparison' }, left: Operand, right: Operand) {
  const [list, other, trees] = isList(left.type)
    ? [left, right, [tree.left, tree.right] as const]
    : [right, left, [tree.right, tree.left] as const]
  if (isList(list.type) && !isList(other.type)) {
    const [inList, item] = trees.map(textOf)
    const contains =
      tree.operator === '==' ? `${inList} contains ${item}` : `not (${inList} contains ${item})`
    return {
      problem: 'a list is never equal to one value',
      hint: instead(contains, tree),
    }
  }
  const [value, plain] = right.literal === undefined ? [right, left] : [left, right]
  const flag = /^(true|false)$/i.exec(String(plain.literal))?.[0].toLowerCase()
  const named = value === left ? tree.left : tree.right
  const problem = `${textOf(named).slice(0, 100)} is ${shown(value)}, and never ${shown(plain)}`
  // A mapping is compared by what names it: `trigger.event.name`.
  const member = typeof plain.literal === 'string' ? memberLike(value.type, plain) : undefined
  if (member !== undefined)
    return { problem, hint: writeInstead(`${textOf(named)}.${member}`, textOf(named)) }
  if (kindsAre(value.type, ['boolean']) && typeof plain.literal === 'string' && flag !== undefined)
    return {
      problem,
      hint: instead(`${textOf(value === left ? tree.left : tree.right)} ${tree.operator} ${flag}`, tree),
    }
  return { problem }
}

/** The member of a mapping that can be equal to a text: one with a list of values, or else its name or id. */
function memberLike(type: ValueType, wanted: Operand): string | undefined {
  const { properties } = optionsOf(type).find((one) => one.type === 'object') ?? {}
  if (!properties) return undefined
  const possible = Object.keys(properties).filter((name) => canBeEqual({ type: properties[name]! }, wanted))
  return (
    possible.find((name) => allowedValues(properties[name]!)) ??
    ['name', 'id'].find((name) => possible.includes(name))
  )
}

function withoutOrder(
  tree: Expression & { kind: 'comparison' },
  { what, with: given }: NonNullable<ReturnType<typeof orderProblem>>,
  left: Operand,
  right: Operand,
) {
  if (what === 'a list') {
    const size = (operand: Operand, one: Expression) =>
      isList(operand.type) ? `(${textOf(one)} | size)` : textOf(one)
    return {
      problem: 'a list is neither greater nor less than a value',
      hint: instead(`${size(left, tree.left)} ${tree.operator} ${size(right, tree.right)}`, tree),
    }
  }
  if (given === undefined) return { problem: `${what} is neither greater nor less than a value` }
  return {
    problem: `${what} is neither greater nor less than ${JSON.stringify(given)}`,
    hint:
      what === 'a time'
        ? 'compare with a time, such as "2026-01-31", `run.started_at` or `(run.started_at | add_time: -7, "days")`'
        : undefined,
  }
}

/** What a value is, for messages. */
export function shown({ type, literal }: Operand): string {
  if (literal !== undefined) return JSON.stringify(literal)
  const [option] = optionsOf(type)
  if (option?.format === 'date' || option?.format === 'date-time') return 'a time'
  if (option?.format === 'decimal') return 'a number'
  if (option?.format === 'uuid') return 'an id'
  if (option?.format === 'currency') return 'a currency such as EUR'
  const kinds = kindsOf(type) ?? []
  return kinds.map((kind) => WORDS[kind] ?? kind).join(' or ') || 'null'
}

const WORDS: Record<string, string> = {
  array: 'a list',
  object: 'a mapping',
  string: 'a text',
  number: 'a number',
  boolean: 'a boolean',
}

/** An expression as it is written. */
export function textOf(tree: Expression): string {
  const tokens = tokensOf(tree)
  const [first] = tokens
  if (!first) return ''
  return first.input.slice(
    Math.min(...tokens.map(({ begin }) => begin)),
    Math.max(...tokens.map(({ end }) => end)),
  )
}

const tokensOf = (tree: Expression): Token[] =>
  tree.kind === 'value'
    ? [tree.token]
    : Object.values(tree).flatMap((inner) =>
        typeof inner === 'object' && inner !== null && 'kind' in inner && typeof inner.kind === 'string'
          ? tokensOf(inner as Expression)
          : [],
      )

const instead = (better: string, tree: Expression) => writeInstead(better, textOf(tree))

/** The value that an expression is, if it is a text in quotes, a number or a boolean. */
export function plainOf(tree: Expression): string | number | boolean | undefined {
  if (tree.kind !== 'value') return undefined
  const { token } = tree
  if (TypeGuards.isQuotedToken(token) || TypeGuards.isNumberToken(token)) return token.content
  const text = TypeGuards.isLiteralToken(token) ? token.getText() : ''
  return text === 'true' ? true : text === 'false' ? false : undefined
}
