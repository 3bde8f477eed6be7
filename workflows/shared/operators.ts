/**
 * The comparison operators of list filters and node conditions. In both, text comparison ignores case, and a negation
 * holds exactly if its operator does not, for null too.
 */
interface Meaning {
  /** The operands. */
  takes: 'nothing' | 'one' | 'two' | 'list' | 'boolean'
  /** The operator that it negates. */
  negates?: string
}

const OPERATORS = {
  eq: { takes: 'one' },
  ne: { takes: 'one', negates: 'eq' },
  gt: { takes: 'one' },
  gte: { takes: 'one' },
  lt: { takes: 'one' },
  lte: { takes: 'one' },
  /** From the first value to the second, both included. */
  between: { takes: 'two' },
  in: { takes: 'list' },
  not_in: { takes: 'list', negates: 'in' },
  contains: { takes: 'one' },
  not_contains: { takes: 'one', negates: 'contains' },
  starts_with: { takes: 'one' },
  ends_with: { takes: 'one' },
  /** One item of the list equals the value. */
  has: { takes: 'one' },
  has_not: { takes: 'one', negates: 'has' },
  /** Before the time, or never. */
  not_since: { takes: 'one', negates: 'gte' },
  /** `true`: the field has no value; `false`: it has one. */
  is_null: { takes: 'boolean' },
  /** No value, or an empty text, list or object. */
  is_empty: { takes: 'nothing' },
  is_not_empty: { takes: 'nothing', negates: 'is_empty' },
} as const satisfies Record<string, Meaning>

type OperatorName = keyof typeof OPERATORS

type Negation = {
  [Name in OperatorName]: (typeof OPERATORS)[Name] extends { negates: string } ? Name : never
}[OperatorName]

/** Wire names that differ from the operator's own: list filters write `not_in` as `nin`. */
const ALIASES = { nin: 'not_in' } as const satisfies Record<string, OperatorName>

type Operator = OperatorName | keyof typeof ALIASES

/** The operators of list filters, on the wire and in stored exports. */
export const FILTER_OPERATORS = [
  'eq',
  'ne',
  'gt',
  'gte',
  'lt',
  'lte',
  'between',
  'in',
  'nin',
  'contains',
  'starts_with',
  'is_null',
  'has',
  'has_not',
  'not_since',
] as const satisfies Operator[]
export type FilterOperator = (typeof FILTER_OPERATORS)[number]

/** The operators of node conditions. */
export const CONDITION_OPERATORS = [
  'eq',
  'ne',
  'gt',
  'gte',
  'lt',
  'lte',
  'contains',
  'not_contains',
  'starts_with',
  'ends_with',
  'in',
  'not_in',
  'is_empty',
  'is_not_empty',
] as const satisfies Operator[]
export type ConditionOperator = (typeof CONDITION_OPERATORS)[number]
export type PositiveCondition = Exclude<ConditionOperator, Negation>

const meaningOf = (operator: Operator): Meaning =>
  OPERATORS[operator in ALIASES ? ALIASES[operator as keyof typeof ALIASES] : (operator as OperatorName)]

export const operandsOf = (operator: Operator): Meaning['takes'] => meaningOf(operator).takes

/** The operator that this one negates; undefined if it is not a negation. */
export const negatedBy = (operator: ConditionOperator): ConditionOperator | undefined =>
  meaningOf(operator).negates as ConditionOperator | undefined

export const isNegation = (operator: Operator): boolean => meaningOf(operator).negates !== undefined
