import { hideSecretPlaces } from '../nodes/secret-places.ts'
import { maskText } from '../shared/credentials.ts'
import { isObject } from '../shared/is-object.ts'
import { isSecretName, isSecretParameter, MASK } from '../shared/secret-names.ts'

/** Keys whose values are credentials. */
const KEYS = ['api_key']

/**
 * A rendered config for storage. Masks values that are credentials, and, in URL, headers, query parameters and body,
 * values with secret names, texts that look like credentials, and what `secret_headers` and `secret_fields` name.
 */
export function masked(authored: unknown): unknown {
  if (!isObject(authored)) return authored
  const config = hideSecretPlaces(authored, authored).shown
  const parts = ['url', 'headers', 'query', 'body'].filter((part) => config[part] !== undefined)
  const keys = KEYS.filter((key) => config[key] !== undefined)
  if (parts.length + keys.length === 0) return config
  return {
    ...config,
    ...Object.fromEntries(keys.map((key) => [key, MASK])),
    ...Object.fromEntries(
      parts.map((part) => [
        part,
        maskedValue(config[part], part === 'query' ? isSecretParameter : isSecretName),
      ]),
    ),
  }
}

/** A value without the members that have secret names, and without texts that look like credentials. */
export function maskedValue(value: unknown, isSecret: (name: string) => boolean = isSecretName): unknown {
  if (typeof value === 'string') return maskText(value)
  if (Array.isArray(value)) return value.map((item) => maskedValue(item, isSecret))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isSecret(name) ? MASK : maskedValue(member, isSecret),
    ]),
  )
}
