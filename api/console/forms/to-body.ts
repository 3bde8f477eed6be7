import type { FieldSpec } from './field-spec.ts'
import type { Form } from './form.ts'

/**
 * The body of a request, from the fields of a form. What does not fit its type is sent as it was typed: the API says why
 * it refuses it. Fields that the form does not have are left out; empty ones are null, or left out with `omitEmpty`;
 * those that are as in `stored` are left out.
 */
export function toBody(
  specs: readonly FieldSpec[],
  form: Form,
  { omitEmpty = false, stored = {} }: { omitEmpty?: boolean; stored?: Record<string, string> } = {},
): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const spec of specs) {
    if (!isSent(spec, form) || isUnchanged(spec, form, stored)) continue
    const value = typedValue(spec, form)
    if (value === null && omitEmpty) continue
    place(body, spec.name.split('.'), value)
  }
  return body
}

/** The field with the stored texts that a form was made with: what differs from them was typed. */
export const STORED_FIELD = 'was'

export function storedBefore(form: Form): Record<string, string> {
  try {
    const texts: unknown = JSON.parse(form.get(STORED_FIELD))
    return typeof texts === 'object' && texts !== null ? (texts as Record<string, string>) : {}
  } catch {
    return {}
  }
}

/** Browsers leave out a checkbox that is not ticked: a hidden field tells that the form has it. */
const isSent = ({ name }: FieldSpec, form: Form) => form.has(name) || form.has(`${name}:has`)

function typedValue(spec: FieldSpec, form: Form): unknown {
  const text = form.get(spec.name)
  if (spec.type === 'boolean') return form.has(`${spec.name}:has`) ? text === 'true' : toBoolean(text)
  if (spec.type === 'choices') return form.all(spec.name)
  if (spec.nullable && text.trim() === '') return null
  if (spec.type === 'lines') return lines(text)
  if (spec.type === 'numbers') return lines(text).map(toNumber)
  if (spec.type === 'pairs') return Object.fromEntries(lines(text).map(toPair))
  if (text.trim() === '') return null
  if (spec.type === 'integer' || spec.type === 'number') return toNumber(text)
  if (spec.type === 'json') return toJson(text)
  return text
}

const isUnchanged = ({ name, type }: FieldSpec, form: Form, stored: Record<string, string>) => {
  const text = type === 'choices' ? form.all(name).join('\n') : form.get(name)
  const isBox = form.has(`${name}:has`)
  const was = stored[name]
  return was !== undefined && asSent(was, type) === (isBox && text === '' ? 'false' : asSent(text, type))
}

const AREAS: readonly string[] = ['long_text', 'lines', 'numbers', 'pairs', 'json', 'choices']

/** A text as a browser sends it back: a field of one line has no line breaks, and a time no seconds that are zero. */
export function asSent(text: string, type: FieldSpec['type']): string {
  if (AREAS.includes(type)) return text.replace(/\r\n?/g, '\n')
  const line = text.replace(/[\r\n]/g, '')
  return type === 'datetime' ? line.replace(/^(.{16}):00$/, '$1') : line
}

const toBoolean = (text: string) => (text === '' ? null : text === 'true')

const toNumber = (text: string) => (Number.isNaN(Number(text)) ? text : Number(text))

const lines = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

function toPair(line: string): [string, string] {
  const colon = line.indexOf(':')
  return colon < 0 ? [line, ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
}

/** The value of a JSON text; another text as it is, so that the operation refuses it. */
export function toJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Puts a value where its path says: `address.city`. The names come from schemas. */
function place(body: Record<string, unknown>, [first, ...rest]: string[], value: unknown): void {
  if (first === undefined) return
  if (rest.length === 0) body[first] = value
  else {
    body[first] ??= {}
    place(body[first] as Record<string, unknown>, rest, value)
  }
}
