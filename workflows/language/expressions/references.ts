import { type Token, TypeGuards, type Value } from 'liquidjs'
import { acceptsMissing } from './omitted.ts'
import { hasPlaceholder, parseTemplate, type Template } from './template.ts'
import { isOptionalDefault, testedTokens } from './tree.ts'

/** A path that a placeholder reads, up to the first computed segment. */
export interface Reference {
  /** `['nodes', 'find', 'output', 'id']` */
  path: (string | number)[]
  /** Whether a computed segment follows, as in `nodes[inputs.which]`. */
  dynamic: boolean
  /** Whether it is the whole string, without filters: the result then has the type of the value. */
  whole: boolean
  /** Whether a filter `default` or `omit_if_empty` follows directly: the value may be missing. */
  optional: boolean
  /** Whether it is compared with null: the author knows that it may be null. */
  tested: boolean
  /** What is read in its place, if it is there: in `x | default: y` the path x is one of y. */
  alternatives?: (string | number)[][]
}

type Traits = Pick<Reference, 'whole' | 'optional' | 'tested' | 'alternatives'>

/** Every reference in a string, also within brackets and filter arguments. Throws TemplateError. */
export function references(text: string): Reference[] {
  return hasPlaceholder(text) ? referencesIn(parseTemplate(text).parts) : []
}

/** The same of a parsed string. */
export const referencesIn = (parts: Template['parts']): Reference[] =>
  parts.flatMap((part) => (typeof part === 'string' ? [] : referencesOf(part, parts.length === 1)))

/** Every reference of one placeholder. `alone`: there is no text around it. */
export function referencesOf(part: Value, alone: boolean): Reference[] {
  const found: Reference[] = []
  const whole = alone && part.filters.length === 0 && part.initial.postfix.length === 1
  const optional = acceptsMissing(part)
  collectAll(part, { whole, optional, tested: false }, found, isOptionalDefault)
  return found
}

/** The references of an expression and its filters. `mayMiss`: whether the arguments of a filter may be missing. */
function collectAll(
  { initial, filters }: Filtered,
  traits: Traits,
  found: Reference[],
  mayMiss: typeof isOptionalDefault = () => false,
): void {
  const tested = testedTokens(initial)
  const begin = found.length
  for (const token of initial.postfix)
    collect(token, { ...traits, tested: traits.tested || tested.has(token) }, found)
  for (const [index, { name, args }] of filters.entries()) {
    const before = name === 'default' ? found.slice(begin).map(({ path }) => path) : []
    const alternatives = before.length > 0 ? { alternatives: before } : {}
    for (const argument of args) {
      const optional = mayMiss(filters, index)
      collect(
        Array.isArray(argument) ? argument[1] : argument,
        { whole: false, optional, tested: false, ...alternatives },
        found,
      )
    }
  }
}

type Filtered = Pick<Value, 'initial' | 'filters'>

function collect(token: Token | undefined, traits: Traits, found: Reference[]): void {
  if (!token) return
  const inner = { ...traits, whole: false }
  if (TypeGuards.isFilteredValueToken(token)) {
    const optional = traits.optional || acceptsMissing(token)
    collectAll(token as unknown as Filtered, { ...inner, optional }, found)
  }
  if (TypeGuards.isRangeToken(token)) {
    collect(token.lhs, inner, found)
    collect(token.rhs, inner, found)
  }
  if (!TypeGuards.isPropertyAccessToken(token)) return
  const path: (string | number)[] = []
  let dynamic = false
  // `"text".size` reads a literal: there is no root to check.
  if (token.variable) collect(token.variable, inner, found)
  for (const segment of token.props) {
    const known =
      TypeGuards.isWordToken(segment) ||
      TypeGuards.isQuotedToken(segment) ||
      TypeGuards.isNumberToken(segment)
    if (!known) collect(segment, inner, found)
    if (known && !dynamic) path.push(segment.content)
    else dynamic = true
  }
  if (!token.variable) found.push({ path, dynamic, ...traits })
}
