import { z } from 'zod'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { isObject } from '../shared/is-object.ts'
import { SECRETS } from '../shared/limits.ts'
import { isUnsupportedPath } from '../shared/paths.ts'
import { MASK } from '../shared/secret-names.ts'
import { SecretPaths } from '../shared/secret-paths.ts'
import type { Authored, ConfigProblem } from './define.ts'
import { HEADER_NAME } from './http-fields.ts'

/**
 * The settings by which an author marks values of a request and its answer as secret. They are sent and received, but
 * nothing shows them: neither the input, output and errors of the node, nor what reads its output.
 */
export const secretPlaces = {
  secret_headers: z
    .array(
      z
        .string()
        .max(100)
        .regex(HEADER_NAME, 'is not a header name')
        .toLowerCase()
        .refine((name) => name !== 'content-type', 'is no secret: it says how to read the body'),
    )
    .max(50)
    .optional()
    .describe('Names of headers of request and answer whose values are masked, in any case.'),
  secret_fields: z
    .array(
      z
        .string()
        .max(200)
        .refine(
          (path) => !isUnsupportedPath(path),
          'must name one value, by members and indexes: user.ssn, accounts[0].iban',
        ),
    )
    .max(50)
    .optional()
    .describe(
      'Paths into the query and body of the request and the body of the answer (`user.ssn`); a name after a list is that of each item. A body that is text, which has no paths, is masked as a whole. Later nodes read `[masked]`.',
    ),
}

interface Places {
  secret_headers: string[]
  /** Paths that can be read. */
  secret_fields: string[]
}

/** The places of a config, which may be one that is not validated. */
export function secretPlacesOf({ secret_headers, secret_fields }: Authored): Places {
  const textsOf = (value: unknown) =>
    Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
  return {
    secret_headers: textsOf(secret_headers).map((name) => name.toLowerCase()),
    secret_fields: textsOf(secret_fields),
  }
}

/** Placeholders among the places: validation could not tell which values are masked. */
export const computedPlaces = (config: Authored): ConfigProblem[] =>
  (['secret_headers', 'secret_fields'] as const).flatMap((name) =>
    hasPlaceholder(JSON.stringify(config[name] ?? null))
      ? [
          {
            code: 'invalid_value',
            message: `${name} has a placeholder: which values are masked must be known before a run`,
            path: [name],
            hint: 'write the names',
          },
        ]
      : [],
  )

export interface HiddenParts<Part> {
  /** The parts with masks in the secret places. */
  shown: Part
  /** The secret values to mask wherever they occur. */
  values: string[]
}

/** Hides the secret places of a request or an answer. `parts`: `url`, `headers`, `query` and `body`, as far as given. */
export function hideSecretPlaces<Part extends object>(config: Authored, parts: Part): HiddenParts<Part> {
  const { secret_headers, secret_fields } = secretPlacesOf(config)
  const values: string[] = []
  const shown = { ...parts } as Record<string, unknown>
  const { url, headers, query, body } = shown
  if (secret_headers.length > 0 && isObject(headers))
    shown.headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => {
        if (!secret_headers.includes(name.toLowerCase())) return [name, value]
        values.push(String(value))
        return [name, MASK]
      }),
    )
  if (secret_fields.length > 0) {
    const hide = (value: unknown) => {
      const paths = new SecretPaths(value, secret_fields)
      values.push(...paths.valuesOf(value))
      return paths.masked(value)
    }
    if (typeof url === 'string') shown.url = hideInUrl(url, secret_fields, values)
    if (isObject(query)) shown.query = hide(query)
    if (typeof body === 'string') {
      // The text may hold the fields in another form, or JSON that is cut.
      for (const value of [body, ...readable(body)]) {
        if (typeof value === 'string') values.push(value)
        else hide(value)
      }
      shown.body = MASK
    } else if (body !== undefined) shown.body = hide(body)
  }
  return { shown: shown as Part, values: values.filter((value) => value.length <= SECRETS.characters) }
}

function hideInUrl(url: string, fields: readonly string[], values: string[]): string {
  return url.replace(/([?&])([^=&#]*)=([^&#]*)/g, (whole, sign: string, name: string, value: string) => {
    const [[decodedName, decoded] = ['', '']] = new URLSearchParams(`${name}=${value}`)
    if (!fields.includes(decodedName)) return whole
    values.push(decoded)
    return `${sign}${name}=${MASK}`
  })
}

/** What a text is as JSON and as a form. */
function readable(text: string): unknown[] {
  const form = Object.fromEntries(new URLSearchParams(text))
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) || Array.isArray(value) ? [value] : [form]
  } catch {
    return [form]
  }
}
