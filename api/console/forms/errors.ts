import type { InnerAnswer } from '../../http/inner-request.ts'

/** Why the API refused a form: at each field, and what belongs to no field. */
export interface FormErrors {
  byField: Map<string, string[]>
  others: string[]
}

export const NO_ERRORS: FormErrors = { byField: new Map(), others: [] }

interface ErrorBody {
  error?: { message?: string; hint?: string; param?: string; request_id?: string }
  detail?: { loc: (string | number)[]; msg: string; hint?: string }[]
}

/** The errors of a refusal. `names`: the fields of the form; an issue inside of a field's value belongs to that field. */
export function errorsOf({ body, status }: InnerAnswer, names: readonly string[]): FormErrors {
  const { error = {}, detail } = body as ErrorBody
  const byField = new Map<string, string[]>()
  const others: string[] = []
  const add = (path: string, text: string) => {
    const field = names.find((name) => path === name || path.startsWith(`${name}.`))
    if (field === undefined) others.push(path ? `${path}: ${text}` : text)
    else byField.set(field, [...(byField.get(field) ?? []), text])
  }
  for (const { loc, msg, hint } of detail ?? [])
    add(loc.slice(1).join('.'), [msg, hint].filter(Boolean).join(': '))
  if (!detail) {
    const text = [error.message, error.hint].filter(Boolean).join('. ')
    add(error.param ?? '', status >= 500 ? `${text} (request ${error.request_id})` : text)
  }
  return { byField, others }
}
