import { render } from '../../../../workflows/language/expressions/liquid.ts'
import { references } from '../../../../workflows/language/expressions/references.ts'
import { parseTemplate, TemplateError } from '../../../../workflows/language/expressions/template.ts'
import { NodeError } from '../../../../workflows/language/node-error.ts'

/** Filters of mapping rules: those of workflows, by the same engine, on the `value` of the rule. */

/** What their arguments can read. */
const ROOTS = ['value', 'payload']

const templateOf = (filters: string) => `{{ value | ${filters} }}`

/** What is wrong with filters; undefined for valid ones. */
export function filtersProblem(filters: string): string | undefined {
  const template = templateOf(filters)
  try {
    if (parseTemplate(template).parts.length !== 1) return 'must be filters only, without {{ and }}'
    const other = references(template).find(({ path: [root] }) => !ROOTS.includes(String(root)))
    return other && `${other.path[0]} is not available: filters read ${ROOTS.join(' and ')}`
  } catch (error) {
    if (error instanceof TemplateError) return error.message
    throw error
  }
}

/** The paths into the payload that the arguments of filters read, up to the first computed segment. */
export const payloadPaths = (filters: string): string[][] =>
  references(templateOf(filters)).flatMap(({ path: [root, ...steps] }) =>
    root === 'payload' ? [steps.map(String)] : [],
  )

/** The filtered text. Text that they cannot convert is unchanged. @param most characters. */
export function filtered(value: string, filters: string, payload: unknown, most: number): string {
  try {
    return textOf(render(templateOf(filters), { value, payload }, { characters: most }))
  } catch (error) {
    if (error instanceof NodeError) return value
    throw error
  }
}

/** A list of texts is that of tags. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) return value.join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
