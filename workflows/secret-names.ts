/** The names of headers, fields and parameters whose values are secrets: they are stored and shown nowhere. */
const SECRET_NAME =
  /secret|signature|token|authorization|cookie|passw(or)?d|credential|hmac|(api|access|private|signing)[-_. ]?key|(^|(?<!idempotency)[-_. ])key$|^database_?url$/i

export const isSecretName = (name: string): boolean => SECRET_NAME.test(name)

/** What stands in place of a secret. */
export const MASK = '[masked]'

/** The value with each member of a secret name masked, in objects and lists, `depth` levels deep. */
export function maskSecrets(value: unknown, depth = Number.POSITIVE_INFINITY): unknown {
  if (depth <= 0) return value
  if (Array.isArray(value)) return value.map((item) => maskSecrets(item, depth - 1))
  if (!isPlainObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isSecretName(name) ? MASK : maskSecrets(member, depth - 1),
    ]),
  )
}

/** Not an Error, a Date or a Buffer: these stay what they are. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
