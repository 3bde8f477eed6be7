import { hasPlaceholder } from '../language/expressions/template.ts'
import { meantBy, nearestName } from '../language/problems.ts'
import { isObject } from '../shared/is-object.ts'
import type { FilterIssue, RecordKind } from './catalogue.ts'
import type { ConfigProblem } from './define.ts'

/** What is wrong with the filters and the sort of a search of records. */

export function filterProblems(kind: RecordKind, parameter: string, value: unknown): ConfigProblem[] {
  const issue = kind.checkFilter(parameter, value) ?? valueIssue(kind, parameter, value)
  const unknownYet = [value].flat().some((one) => typeof one === 'string' && hasPlaceholder(one))
  if (isObject(value)) {
    const [operator = 'gt', operand = '…'] = Object.entries(value)[0] ?? []
    return [
      {
        code: 'invalid_value',
        message: `the operator of a filter is in its key`,
        path: ['filters', parameter],
        hint: `replace it by \`"${parameter}[${operator}]": ${JSON.stringify(operand)}\``,
      },
    ]
  }
  const written = operatorInValue(kind, parameter, value)
  if (written) return [written]
  if (!issue || (issue.type === 'invalid_value' && unknownYet)) return []
  const { message, type, allowed } = issue
  const path = ['filters', parameter]
  if (type === 'invalid_value')
    return [{ code: 'invalid_value', message: `${parameter} ${message}`, path, ...choice(value, allowed) }]
  const [field = '', operator] = parameter.split('[')
  const meant =
    type === 'unknown_operator'
      ? meantBy(
          operator?.replace(/\]$/, '') ?? '',
          allowed.map((one) => one.slice(field.length + 1, -1)),
        )
      : undefined
  return [
    {
      code: 'unknown_field',
      message:
        type === 'unknown_operator' ? message : `records cannot be filtered by ${parameter.slice(0, 100)}`,
      path,
      atKey: true,
      ...(meant === undefined
        ? type === 'unknown_operator'
          ? { hint: `one of ${allowed.join(', ')}` }
          : nearestName(field, allowed)
        : { hint: `did you mean ${field}[${meant}]?` }),
    },
  ]
}

export function sortProblems(kind: RecordKind, sort: unknown): ConfigProblem[] {
  if (typeof sort !== 'string' || hasPlaceholder(sort) || sort.startsWith('custom_fields.')) return []
  if (kind.sortable.includes(sort)) return []
  return [
    {
      code: 'unknown_field',
      message: `records cannot be sorted by ${sort.slice(0, 100)}`,
      path: ['sort'],
      ...(sort.startsWith('-') && kind.sortable.includes(sort.slice(1))
        ? { hint: `write \`sort: ${sort.slice(1)}\` and \`order: desc\`` }
        : choice(sort, kind.sortable)),
    },
  ]
}

/** The hint with the value that was meant, or with all allowed values. */
export function choice(value: unknown, allowed: readonly string[]): { hint?: string } {
  if (allowed.length === 0) return {}
  const meant = typeof value === 'string' ? meantBy(value, allowed) : undefined
  return { hint: meant === undefined ? `one of ${allowed.join(', ')}` : `did you mean ${meant}?` }
}

/** A filter by a value that the organization does not have finds nothing. */
function valueIssue({ values }: RecordKind, parameter: string, value: unknown): FilterIssue | undefined {
  const [field = '', operator = ''] = parameter.split('[')
  const allowed = Object.hasOwn(values, field) ? values[field]! : undefined
  if (!allowed || operator.startsWith('is_null')) return undefined
  const all: unknown[] = Array.isArray(value)
    ? value
    : String(value).split(operator.includes('in') ? ',' : '\0')
  const unknown = all.find((one) => !allowed.includes(String(one).trim().toLowerCase()))
  return unknown === undefined
    ? undefined
    : {
        message: `${String(unknown).slice(0, 100)} is none of the organization`,
        type: 'invalid_value',
        allowed,
      }
}

const SIGNS: Record<string, string> = {
  '>=': 'gte',
  '<=': 'lte',
  '!=': 'ne',
  '<>': 'ne',
  '==': 'eq',
  '=': 'eq',
  '>': 'gt',
  '<': 'lt',
  like: 'contains',
  ilike: 'contains',
  contains: 'contains',
  not: 'ne',
  in: 'in',
}
const SIGN = /^\s*(>=|<=|!=|<>|==|=|>|<|(?:like|ilike|contains|not|in)(?=[\s(]))\s*(.*)$/is
/** A pattern of SQL or of files: `%ada%`, `*@example.com`. */
const PATTERN = /^([%*]?)([^%*]+)([%*]?)$/

/**
 * The problem of a filter whose value has the operator in it, such as `"> 100"`: it would be compared with a field as a
 * plain text, and find nothing. Undefined for other values.
 */
function operatorInValue(kind: RecordKind, parameter: string, value: unknown): ConfigProblem | undefined {
  const [, field = '', operator] = /^([^[\]]+)(?:\[(\w+)\])?$/.exec(parameter) ?? []
  const path = ['filters', parameter]
  const allowed = (name: string) =>
    kind.checkFilter(`${field}[${name}]`, name === 'is_null' ? true : '1')?.type !== 'unknown_operator'
  if (value === null && operator === undefined)
    return {
      code: 'invalid_value',
      message: `null is no value of a filter: it finds the records without ${field.slice(0, 100)} by an operator`,
      path,
      hint: `replace it by \`"${field}[is_null]": true\``,
    }
  if (typeof value !== 'string') return undefined
  const [, sign, operand = ''] = SIGN.exec(value) ?? []
  // A text field may have a value that begins with such a word.
  const isWord = sign !== undefined && /^[a-z]/i.test(sign)
  const meant = sign === undefined ? undefined : SIGNS[sign.toLowerCase()]
  if (meant !== undefined && !(isWord && operator !== undefined)) {
    const plain = operand
      .trim()
      .replace(/^(['"])(.*)\1$/s, '$2')
      .replace(/^%(.*)%$/s, '$1')
    if (isWord && !/^(like|ilike)$/i.test(sign!) && !/^(['"(])/.test(operand.trim())) return undefined
    return {
      code: 'invalid_value',
      message: `the operator of a filter is in its key, not in its value ${JSON.stringify(value.slice(0, 100))}`,
      path,
      hint: allowed(meant)
        ? `replace it by \`"${field}${meant === 'eq' ? '' : `[${meant}]`}": ${JSON.stringify(plain)}\``
        : 'remove the sign from it',
    }
  }
  const [, before, text = '', after] = PATTERN.exec(value) ?? []
  const isPattern =
    before !== '' && before !== undefined
      ? text.length > 0
      : after === '*' || (after === '%' && !/\d\s*$/.test(text))
  if (!isPattern || hasPlaceholder(value) || (operator !== undefined && operator !== 'eq')) return undefined
  const by = before === '' && allowed('starts_with') ? 'starts_with' : 'contains'
  return {
    code: 'invalid_value',
    message: `a filter compares with ${JSON.stringify(value.slice(0, 100))} as it is written, and knows no patterns`,
    path,
    ...(allowed(by) ? { hint: `replace it by \`"${field}[${by}]": ${JSON.stringify(text)}\`` } : {}),
  }
}
