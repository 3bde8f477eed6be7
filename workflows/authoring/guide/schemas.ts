import { flowText } from '../../language/repair.ts'
import type { Shape } from '../../language/shapes.ts'

/** JSON Schemas as short text. */

/** The settings of a mapping, one line each; for a union, one line for each option. */
export function settingLines(shape: Shape, { full }: { full: boolean }): string[] {
  const options = shape.oneOf ?? shape.anyOf
  if (options)
    return options.map((option) => {
      const [[name, first] = ['', undefined], ...others] = Object.entries(option.properties ?? {})
      if (first?.const === undefined) return `- ${typeText(option)}`
      const settings = others.map(
        ([key, one]) =>
          `${key}${option.required?.includes(key) ? '' : '?'}${full ? `: ${typeText(one)}` : ''}`,
      )
      return `- \`${name}: ${String(first.const)}\`: ${settings.join(', ')}`
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

/** The names of the settings of a mapping: `{a, b?}`; of a union by its first setting: `operation: get {id}, list {…}`. */
export function briefSettings(shape: Shape): string {
  const options = (shape.oneOf ?? shape.anyOf ?? []).map((option) => {
    const [[name, first] = ['', undefined], ...others] = Object.entries(option.properties ?? {})
    return {
      name,
      value: first?.const,
      rest: typeText({ ...option, properties: Object.fromEntries(others) }),
    }
  })
  if (options.length === 0 || options.some(({ value }) => value === undefined)) return typeText(shape)
  return `${options[0]!.name}: ${options.map(({ value, rest }) => `${String(value)} ${rest}`).join(', ')}`
}

const isEmpty = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Up to the first full stop that ends a sentence. */
export const firstSentence = (text: string): string => /^.*?[.!](?=\s+[A-Z`]|$)/s.exec(text)?.[0] ?? text

/** `text`, `number`, `a|b`, `list of text`, `{a, b?}`. */
export function typeText(shape: Shape): string {
  if (shape.const !== undefined) return String(shape.const)
  if (shape.enum) return shape.enum.map(String).join('|')
  const options = shape.anyOf ?? shape.oneOf
  if (options) return [...new Set(options.map(typeText))].filter((text) => text !== 'null').join(' or ')
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
