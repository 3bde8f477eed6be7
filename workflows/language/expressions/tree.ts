import { type Context, evalToken, type Token, TypeGuards, toValue, type Value } from 'liquidjs'
import { EXPRESSION } from '../../shared/limits.ts'
import { type Doubts, noteFilters } from './doubts.ts'
import { DESCENDING } from './list-filters.ts'
import { acceptsMissing, requireNone } from './omitted.ts'
import { endOf, isInBrackets } from './token-ends.ts'
import { holds } from './truth.ts'

/**
 * The operators of expressions. LiquidJS reads the tokens and evaluates values and filters; the order in which operators
 * apply is decided here, since Liquid has no precedence: `a and b or c` is there `a and (b or c)`.
 */
export type Expression =
  /** A literal, a path, a range, or an expression in parentheses with its filters. */
  | { kind: 'value'; token: Token }
  | { kind: 'not'; of: Expression }
  | { kind: 'and' | 'or'; left: Expression; right: Expression }
  | { kind: 'comparison'; operator: string; left: Expression; right: Expression }
  /** `when ? then : otherwise` */
  | { kind: 'choice'; when: Expression; then: Expression; otherwise: Expression }

/** The signs of a choice, which LiquidJS must read as operators. */
export const CHOICE = { '?': unreachable, ':': unreachable }

function unreachable(): never {
  throw new Error('a choice is evaluated by its tree')
}

type Tokens = Value['initial']

/** The trees by what LiquidJS has read. */
const trees = new WeakMap<Tokens, Expression>()

/** The tree of an expression that `prepare` has seen. */
export const treeOf = (tokens: Tokens): Expression => trees.get(tokens)!

/**
 * Builds the trees of an expression and of all expressions in parentheses within it, and makes LiquidJS evaluate them.
 * Throws an error for the author.
 */
function prepare(tokens: Tokens, doubts: Doubts): void {
  const tree = treeFrom(tokens)
  trees.set(tokens, tree)
  tokens.evaluate = (context: Context, lenient?: boolean) => evaluate(tree, context, lenient ?? false)
  for (const token of tokens.postfix) prepareWithin(token, doubts)
}

function prepareWithin(token: Token | undefined, doubts: Doubts): void {
  if (!token) return
  if (TypeGuards.isFilteredValueToken(token)) {
    requireNone(token)
    sortDescending(token.filters)
    prepare(token.initial, doubts)
    noteFilters(token, doubts, token.end - 1)
    for (const { args } of token.filters)
      for (const argument of args) prepareWithin(Array.isArray(argument) ? argument[1] : argument, doubts)
  } else if (TypeGuards.isRangeToken(token)) {
    prepareWithin(token.lhs, doubts)
    prepareWithin(token.rhs, doubts)
  } else if (TypeGuards.isPropertyAccessToken(token)) {
    prepareWithin(token.variable, doubts)
    for (const segment of token.props) {
      if (isInBrackets(token, segment)) requireWhole(segment)
      prepareWithin(segment, doubts)
    }
  } else if (TypeGuards.isNumberToken(token) && !isExact(token.getText()))
    doubts.inexact.push(token.getText())
}

/** Whether a number has the value that is written: the last digits of a long one become zeros. */
const isExact = (written: string) => !/^-?\d+$/.test(written) || Number.isSafeInteger(Number(written))

/** Throws an error for the author if something follows the value between brackets: LiquidJS would ignore it. */
function requireWhole(segment: Token): void {
  const { input, begin } = segment
  const end = endOf(segment)
  if (input.slice(end).trimStart().startsWith(']')) return
  const written = input.slice(begin, input.indexOf(']', end)).trim().slice(0, 100)
  throw new Error(
    `within [ ] there is one value: write a filter or an operator in parentheses, \`[(${written})]\``,
  )
}

/** Prepares a placeholder: its expression, and those in the arguments of its filters. Adds to `doubts`. */
export function preparePlaceholder({ initial, filters }: Value, doubts: Doubts): void {
  prepare(initial, doubts)
  noteFilters({ initial, filters }, doubts)
  sortDescending(filters)
  for (const [index, filter] of filters.entries()) {
    for (const argument of filter.args)
      prepareWithin(Array.isArray(argument) ? argument[1] : argument, doubts)
    if (isOptionalDefault(filters, index)) acceptMissingArgument(filter)
  }
}

type Argument = Value['filters'][number]['args'][number]

/** Tells a sort that `reverse` follows directly: empty values are then last too. */
function sortDescending(filters: readonly { name: string; args: Argument[] }[]): void {
  for (const [index, { name, args }] of filters.entries())
    if (SORTS.includes(name) && filters[index + 1]?.name === 'reverse')
      args.push([DESCENDING, { content: true } as unknown as ValueToken])
}

const SORTS = ['sort', 'sort_natural']

type ValueToken = Exclude<Argument, unknown[]>

/** Makes a `default` whose value is missing leave the decision to the next one. */
function acceptMissingArgument(filter: Value['filters'][number]): void {
  const render = filter.render.bind(filter)
  const [argument] = filter.args
  filter.render = function* (value: unknown, context: Context): Step {
    const given = Array.isArray(argument) ? undefined : yield evalToken(argument, context, true)
    return (given ?? null) === null ? value : yield* render(value, context) as Step
  }
}

/** Whether the value of a `default` may be missing too, since another one follows: `x | default: y | default: z`. */
export const isOptionalDefault = (filters: readonly { name: string }[], index: number): boolean =>
  filters[index]!.name === 'default' && acceptsMissing({ filters: filters.slice(index + 1) })

const COMPARISONS = ['==', '!=', '>', '<', '>=', '<=', 'contains']
const MISSING = 'an operator or a filter is missing between two values'

/** Reads the tokens in the order in which they are written. */
class Reader {
  private at = 0
  private readonly tokens: readonly Token[]

  constructor(tokens: readonly Token[]) {
    this.tokens = tokens
  }

  whole(): Expression {
    const tree = this.choice()
    const left = this.tokens[this.at]
    if (!left) return tree
    throw new Error(TypeGuards.isOperatorToken(left) ? `unexpected ${left.operator}` : MISSING)
  }

  private choice(): Expression {
    const when = this.either()
    if (!this.take('?')) return when
    const then = this.choice()
    if (!this.take(':')) throw new Error('a choice is written `condition ? value : other value`')
    return { kind: 'choice', when, then, otherwise: this.choice() }
  }

  private either(): Expression {
    let left = this.both()
    while (this.take('or')) left = { kind: 'or', left, right: this.both() }
    return left
  }

  private both(): Expression {
    let left = this.negation()
    while (this.take('and')) left = { kind: 'and', left, right: this.negation() }
    return left
  }

  private negation(): Expression {
    if (this.take('not') || this.takeNotAsName()) return { kind: 'not', of: this.negation() }
    return this.comparison()
  }

  private comparison(): Expression {
    let left = this.value()
    for (let operator = this.take(...COMPARISONS); operator; operator = this.take(...COMPARISONS))
      left = { kind: 'comparison', operator, left, right: this.value() }
    return left
  }

  private value(): Expression {
    const token = this.tokens[this.at]
    if (!token) throw new Error('a value is missing at the end')
    if (TypeGuards.isOperatorToken(token)) throw new Error(`a value is missing before ${token.operator}`)
    this.at += 1
    return { kind: 'value', token }
  }

  private take(...operators: string[]): string | undefined {
    const token = this.tokens[this.at]
    if (!token || !TypeGuards.isOperatorToken(token) || !operators.includes(token.operator)) return undefined
    this.at += 1
    return token.operator
  }

  /** After `(` LiquidJS reads a value: there `not` is a name. */
  private takeNotAsName(): boolean {
    const [token, next] = this.tokens.slice(this.at, this.at + 2)
    if (!token || !next || token.getText() !== 'not' || TypeGuards.isOperatorToken(next)) return false
    this.at += 1
    return true
  }
}

function treeFrom({ postfix }: Tokens): Expression {
  if (postfix.length > EXPRESSION.tokens)
    throw new Error(`an expression may have ${EXPRESSION.tokens} values and operators at most`)
  return new Reader([...postfix].sort((a, b) => a.begin - b.begin)).whole()
}

/** Whether an expression uses what the first engine does not know: a choice, or parentheses. */
export function isLater(tokens: Tokens): boolean {
  return tokens.postfix.some(
    (token) =>
      TypeGuards.isFilteredValueToken(token) ||
      (TypeGuards.isOperatorToken(token) && Object.hasOwn(CHOICE, token.operator)),
  )
}

/** The values that an expression compares with null. */
export function testedTokens(tokens: Tokens): ReadonlySet<Token> {
  const found = new Set<Token>()
  const visit = (tree: Expression): void => {
    if (tree.kind === 'comparison') {
      const { left, right, operator } = tree
      if (operator === '==' || operator === '!=')
        for (const [one, other] of [
          [left, right],
          [right, left],
        ] as const)
          if (one.kind === 'value' && isNil(other)) found.add(one.token)
    }
    for (const inner of Object.values(tree)) if (isTree(inner)) visit(inner)
  }
  visit(treeOf(tokens))
  return found
}

const isNil = (tree: Expression) =>
  tree.kind === 'value' &&
  TypeGuards.isLiteralToken(tree.token) &&
  ['nil', 'null'].includes(tree.token.getText())

const isTree = (value: unknown): value is Expression =>
  typeof value === 'object' && value !== null && 'kind' in value && typeof value.kind === 'string'

type Step = Generator<unknown, unknown, unknown>

/** Evaluates only what the result needs: in `x != nil and x.y`, the right side only if the left one holds. */
function* evaluate(tree: Expression, context: Context, lenient: boolean): Step {
  switch (tree.kind) {
    case 'value':
      return yield evalToken(tree.token, context, lenient)
    case 'not':
      return !isTrue(yield evaluate(tree.of, context, lenient))
    case 'and':
      return isTrue(yield evaluate(tree.left, context, lenient))
        ? isTrue(yield evaluate(tree.right, context, lenient))
        : false
    case 'or':
      return isTrue(yield evaluate(tree.left, context, lenient))
        ? true
        : isTrue(yield evaluate(tree.right, context, lenient))
    case 'choice':
      return isTrue(yield evaluate(tree.when, context, lenient))
        ? yield evaluate(tree.then, context, lenient)
        : yield evaluate(tree.otherwise, context, lenient)
    case 'comparison': {
      const left = yield evaluate(tree.left, context, lenient)
      const right = yield evaluate(tree.right, context, lenient)
      const operator = context.opts.operators[tree.operator] as (
        l: unknown,
        r: unknown,
        c: Context,
      ) => unknown
      return yield operator(left, right, context)
    }
  }
}

const isTrue = (value: unknown): boolean => holds(toValue(value))
