import { type Context, evalToken, type Token, TypeGuards, toValue, type Value } from 'liquidjs'
import { EXPRESSION } from '../../shared/limits.ts'
import { requireNone } from './omitted.ts'

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
export function prepare(tokens: Tokens): void {
  const tree = treeFrom(tokens)
  trees.set(tokens, tree)
  tokens.evaluate = (context: Context, lenient?: boolean) => evaluate(tree, context, lenient ?? false)
  for (const token of tokens.postfix) prepareWithin(token)
}

function prepareWithin(token: Token | undefined): void {
  if (!token) return
  if (TypeGuards.isFilteredValueToken(token)) {
    requireNone(token)
    prepare(token.initial)
    for (const { args } of token.filters)
      for (const argument of args) prepareWithin(Array.isArray(argument) ? argument[1] : argument)
  } else if (TypeGuards.isRangeToken(token)) {
    prepareWithin(token.lhs)
    prepareWithin(token.rhs)
  } else if (TypeGuards.isPropertyAccessToken(token)) {
    prepareWithin(token.variable)
    for (const segment of token.props) prepareWithin(segment)
  }
}

/** Prepares a placeholder: its expression, and those in the arguments of its filters. */
export function preparePlaceholder({ initial, filters }: Value): void {
  prepare(initial)
  for (const { args } of filters)
    for (const argument of args) prepareWithin(Array.isArray(argument) ? argument[1] : argument)
}

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

function isTrue(value: unknown): boolean {
  const plain = toValue(value)
  return plain !== false && plain !== null && plain !== undefined
}
