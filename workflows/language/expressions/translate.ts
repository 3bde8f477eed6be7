import { OMIT } from './omitted.ts'
import { parseAuthored } from './template.ts'

/** What an author has written in another language, and the same in this one. */
export interface Translation {
  written: string
  better: string
}

/** The text of a branch: plain, or one placeholder without filters. */
const BRANCH = String.raw`((?:[^{}%']|\{\{[^{}|]*\}\})*)`
const IF = new RegExp(
  String.raw`\{%-?\s*if\s+([^%{}]+?)\s*-?%\}${BRANCH}(?:\{%-?\s*else\s*-?%\}${BRANCH})?\{%-?\s*endif\s*-?%\}`,
)
const PLACEHOLDER = /\{\{([^{}]*)\}\}/g
const PATH = String.raw`[a-z_][\w.[\]]*`
const VALUE = String.raw`(?:${PATH}|-?\d+(?:\.\d+)?|"[^"]*"|'[^']*')`
/** A calculation with one operator, or a value with another one in its place. */
const TWO_VALUES = new RegExp(String.raw`^(${PATH})\s*(\?\?|\|\||[*/%+]|\s-\s)\s*(${VALUE})$`, 'i')
const FILTERS: Record<string, string> = {
  '-': 'minus',
  '*': 'times',
  '/': 'divided_by',
  '%': 'modulo',
  '??': 'default',
}

/**
 * Translates a tag `{% if %}`, or the first placeholder with signs of other languages, of a text that does not parse.
 * Undefined if what was meant is not sure, or the result does not parse either.
 */
export function translated(text: string): Translation | undefined {
  const candidates = [choice(text), earlyOmission(text), ...placeholders(text)]
  return candidates.find((one) => one !== undefined && one.better !== one.written && parses(one.better))
}

/** A placeholder with one more filter, such as `{{ x | escape }}`; an expression with operators in parentheses. */
export function filteredBy(placeholder: string, filter: string): string {
  const inner = placeholder.replace(/^\{\{-?\s*/, '').replace(/\s*-?\}\}$/, '')
  const plain = `{{ ${inner} | ${filter} }}`
  return parses(plain) ? plain : `{{ (${inner}) | ${filter} }}`
}

function choice(text: string): Translation | undefined {
  const [written, condition, first, second = ''] = IF.exec(text) ?? []
  if (written === undefined) return undefined
  const [then, otherwise] = [first!, second].map(textValue)
  if (then === undefined || otherwise === undefined) return undefined
  return { written, better: `{{ ${inOurs(condition!)} ? ${then} : ${otherwise} }}` }
}

/** The filter that leaves a field out, before others. */
function earlyOmission(text: string): Translation | undefined {
  const [written, before, after] = /^\{\{([^{}]*?)\|\s*omit_if_empty\s*(\|[^{}]*)\}\}$/.exec(text) ?? []
  return written === undefined
    ? undefined
    : { written, better: `{{${before}${after!.trimEnd()} | ${OMIT} }}` }
}

/** What a branch writes, as a value; undefined for a text with placeholders in it. */
function textValue(branch: string): string | undefined {
  const [, path] = /^\{\{\s*([^{}|]*?)\s*\}\}$/.exec(branch) ?? []
  if (path !== undefined) return path
  return branch.includes('{{') ? undefined : `'${branch}'`
}

const placeholders = (text: string): Translation[] =>
  [...text.matchAll(PLACEHOLDER)].map(([written, inner]) => ({
    written,
    better: `{{ ${calculated(inner!.trim()) ?? inOurs(inner!.trim())} }}`,
  }))

function calculated(inner: string): string | undefined {
  const [, left, sign, right] = TWO_VALUES.exec(inner) ?? []
  if (left === undefined) return undefined
  const operator = sign!.trim()
  const isText = /^["']/.test(right!)
  const isNumber = /^-?\d/.test(right!)
  // What `+` does with two paths depends on their values, and `||` between two conditions is `or`.
  if (operator === '+')
    return isText ? `${left} | append: ${right}` : isNumber ? `${left} | plus: ${right}` : undefined
  if (operator === '||') return isText || isNumber ? `${left} | default: ${right}` : undefined
  return `${left} | ${FILTERS[operator]}: ${right}`
}

/** The operators outside of texts in quotes. */
const inOurs = (expression: string): string =>
  expression
    .split(/("[^"]*"|'[^']*')/)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part
            .replaceAll('===', '==')
            .replaceAll('!==', '!=')
            .replaceAll(/\s*&&\s*/g, ' and '),
    )
    .join('')

function parses(text: string): boolean {
  try {
    parseAuthored(text)
    return true
  } catch {
    return false
  }
}
