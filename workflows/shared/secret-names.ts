/** Names of headers, fields and parameters whose values are secrets: never stored, never shown. */
const SECRET_NAMES = [
  'secret|signature|token|authorization|cookie|passw(or)?d|passphrase|credential|hmac',
  '(api|access|private|signing)[-_. ]?key|(^|(?<!idempotency)[-_. ])key$',
  // The whole name: `author`, `compass`, `boarding_pass` and `signal` are not secret.
  '^(x[-_. ]?)?((api|basic|http|proxy|user|db|smtp|ftp)[-_. ]?)?(auth|pass|pwd|pw)$',
  '^(x[-_. ]?)?sig$|^x-custom$',
  '^database_?url$',
].join('|')

const SECRET_NAME = new RegExp(SECRET_NAMES, 'i')

export const isSecretName = (name: string): boolean => SECRET_NAME.test(name)

/**
 * The same in the query of a URL, where `code` is an authorization code; as a field it is that of a country or error.
 */
export const isSecretParameter = (name: string): boolean => isSecretName(name) || /^code$/i.test(name)

/** The text in place of a secret. */
export const MASK = '[masked]'

/** Masks each member that has a secret name, in objects and lists, `depth` levels deep. */
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

/** False for an Error, a Date or a Buffer, which stay unchanged. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
