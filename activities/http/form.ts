import { NodeError } from '../../workflows/language/node-error.ts'

const FORM = /^application\/x-www-form-urlencoded\b/i

/** Whether the headers of a request say that its body is a form. */
export const isForm = (headers: Record<string, string>): boolean =>
  Object.entries(headers).some(([name, value]) => name.toLowerCase() === 'content-type' && FORM.test(value))

/**
 * A mapping as a form. Members of inner mappings and items of lists are written as most services with forms read them:
 * `card[number]=…`, `items[0][price]=…`. Throws NodeError `invalid_config` for a value that a form cannot hold.
 */
export function formText(body: Record<string, unknown> | unknown[]): string {
  if (Array.isArray(body))
    throw new NodeError('invalid_config', 'body is a list: a form needs names, a mapping')
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(body)) append(form, name, value)
  return form.toString()
}

function append(form: URLSearchParams, name: string, value: unknown): void {
  if (value === null || value === undefined)
    throw new NodeError(
      'invalid_config',
      `body.${name.slice(0, 100)} is null: a form has no null; write \`| default: ""\` for an empty text, or \`| omit_if_empty\` to leave it out`,
    )
  if (typeof value !== 'object') form.append(name, String(value))
  else for (const [key, inner] of Object.entries(value)) append(form, `${name}[${key}]`, inner)
}
