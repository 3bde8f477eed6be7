import { flowText } from '../../language/repair.ts'
import type { Shape } from '../../language/shapes.ts'
import { CONDITION_OPERATORS } from '../../shared/operators.ts'

/** JSON Schemas as short text. */

/** The keys of a mapping, one line each; for a union, one line for each option. */
export function keyLines(shape: Shape, { full }: { full: boolean }): string[] {
  const options = shape.oneOf ?? shape.anyOf
  if (options)
    return options.map((option) => {
      const [[name, first] = ['', undefined], ...others] = Object.entries(option.properties ?? {})
      if (first?.const === undefined) return `- ${typeText(option)}`
      const keys = others.map(
        ([key, one]) =>
          `${key}${option.required?.includes(key) ? '' : '?'}${full ? `: ${typeText(one)}` : ''}`,
      )
      return `- \`${name}: ${String(first.const)}\`: ${keys.join(', ')}`
    })
  return Object.entries(shape.properties ?? {}).map(([name, one]) => {
    const required = shape.required?.includes(name) ? ', required' : ''
    const preset =
      one.default === undefined || isEmpty(one.default) ? '' : `, default \`${flowText(one.default)}\``
    const text =
      one.description === undefined ? '' : `: ${full ? one.description : firstSentence(one.description)}`
    return `- \`${name}\` (${typeText(one)}${required}${preset})${text}`
  })
}

/**
 * The keys of a mapping with their values, `{mode: a|b, limit?: 1–200}`; of a union by its first key:
 * `operation: get {id}, list {…}`. Values that an option before has named are not repeated.
 */
export function briefKeys(shape: Shape): string {
  const named = new Set<string>()
  const options = (shape.oneOf ?? shape.anyOf ?? []).map((option) => {
    const [[name, first] = ['', undefined], ...others] = Object.entries(option.properties ?? {})
    return { name, value: first?.const, option: { ...option, properties: Object.fromEntries(others) } }
  })
  if (options.length === 0 || options.some(({ value }) => value === undefined))
    return membersText(shape, named)
  return `${options[0]!.name}: ${options.map(({ value, option }) => `${String(value)} ${membersText(option, named)}`).join(', ')}`
}

function membersText(shape: Shape, named: Set<string>): string {
  const members = Object.entries(shape.properties ?? {}).map(([name, one]) => {
    const values = valuesText(one)
    const shown = values === '' || named.has(`${name} ${values}`) ? '' : `: ${values}`
    named.add(`${name} ${values}`)
    return `${name}${shape.required?.includes(name) ? '' : '?'}${shown}`
  })
  return shape.properties ? `{${members.join(', ')}}` : typeText(shape)
}

/** The largest bound that an author is told: larger ones only keep numbers exact. */
const TOLD = 1_000_000

/** What the name of a key does not tell: its values, its bounds, the members of its items; else empty. */
function valuesText(shape: Shape): string {
  if (shape.enum) return isOperator(shape.enum) ? '' : enumText(shape.enum)
  if (shape.type === 'array') {
    const items = shape.items ? valuesText(shape.items) : ''
    return items === '' ? '' : `[${items}]`
  }
  if (shape.type === 'object' && shape.properties) return membersText(shape, new Set())
  if (shape.type === 'boolean') return 'bool'
  const { minimum = -Infinity, maximum = Infinity } = shape
  if (minimum >= 0 && maximum <= TOLD) return `${minimum}–${maximum}`
  const options = (shape.anyOf ?? shape.oneOf ?? [])
    .filter(({ type }) => type !== 'null')
    .map((option) => valuesText(option) || String(option.examples?.[0] ?? ''))
  // One option of any value: the others would look like all.
  return options.includes('') ? '' : [...new Set(options)].join(' or ')
}

/** The operators of conditions, which the guide lists once. */
const isOperator = (values: unknown[]) =>
  values.length === CONDITION_OPERATORS.length && values[0] === CONDITION_OPERATORS[0]

const enumText = (values: unknown[]): string =>
  values.map((value) => (/^[\w./-]+$/.test(String(value)) ? String(value) : JSON.stringify(value))).join('|')

/**
 * The members of an output, with those of its lists and mappings: `{count, rows: [{name, value}]}`; without what the
 * text of the keys tells of the same name.
 */
export function outputText(shape: Shape, keys: string, depth = 2): string {
  if (shape.type === 'array') return shape.items ? `[${outputText(shape.items, keys, depth)}]` : '[]'
  const properties = Object.entries(shape.properties ?? {})
  if (properties.length > 0 && depth > 0)
    return `{${properties
      .map(([name, one]) => {
        const inner = outputText(one, keys, depth - 1)
        const told = keys.includes(`${name}: ${inner}`) || keys.includes(`${name}?: ${inner}`)
        return inner === '' || told ? name : `${name}: ${inner}`
      })
      .join(', ')}}`
  if (shape.enum) return enumText(shape.enum)
  const options = (shape.anyOf ?? shape.oneOf ?? [])
    .map((one) => outputText(one, keys, depth))
    .filter(Boolean)
  return [...new Set(options)].join(' or ')
}

const isEmpty = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Up to the first full stop that ends a sentence. */
export const firstSentence = (text: string): string => /^.*?[.!](?=\s+[A-Z`]|$)/s.exec(text)?.[0] ?? text

/** `text`, `number`, `a|b`, `list of text`, `{a, b?}`. */
export function typeText(shape: Shape): string {
  if (shape.title !== undefined) return shape.title
  if (shape.const !== undefined) return String(shape.const)
  if (shape.enum) return shape.enum.map(String).join('|')
  const options = shape.anyOf ?? shape.oneOf
  if (options) {
    const texts = [...new Set(options.map(typeText))].filter((text) => text !== 'null')
    return texts
      .map((text) =>
        texts.includes(text.replace(/^list of /, '')) && text.startsWith('list of ') ? 'a list' : text,
      )
      .join(' or ')
  }
  if (Array.isArray(shape.type))
    return shape.type.map((type) => WORDS[String(type)] ?? String(type)).join(' or ')
  if (shape.type === 'array') return `list of ${shape.items ? typeText(shape.items) : 'any'}`
  if (shape.type === 'object' && shape.properties)
    return `{${Object.keys(shape.properties)
      .map((name) => `${name}${shape.required?.includes(name) ? '' : '?'}`)
      .join(', ')}}`
  if (shape.format) return FORMATS[shape.format] ?? shape.format
  const [example] = shape.examples ?? []
  const word = WORDS[shape.type ?? ''] ?? 'any'
  return typeof example === 'string' ? `${word} such as ${example}` : word
}

const WORDS: Record<string, string> = { string: 'text', integer: 'number', object: 'mapping' }
for (const type of ['number', 'boolean', 'null']) WORDS[type] = type

const FORMATS: Record<string, string> = { uuid: 'id', 'date-time': 'time', uri: 'url' }
