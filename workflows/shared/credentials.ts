import { isSecretName, isSecretParameter, MASK } from './secret-names.ts'

/**
 * Finds credentials in a text: keys of known services, passwords in URLs, values of HTTP authentication schemes, and
 * `name=value` or `"name": "value"` with a secret name. Validation warns about them; stored values are masked.
 */

/** Keys of services: a prefix, which stays visible, and the form of the secret after it. */
const KNOWN_KEYS: [what: string, prefix: string, secret: string][] = [
  ['a key of this API', 'agx_', '(?:[A-Za-z0-9]{20,}|(?=[A-Za-z]{0,20}\\d)[A-Za-z0-9]{8,})'],
  ['a webhook secret', 'whsec_', '[A-Za-z0-9+/=]{16,}'],
  ['a Stripe key', '[sr]k_(?:live|test)_', '[A-Za-z0-9]{10,}'],
  ['a GitHub token', 'gh[pousr]_', '[A-Za-z0-9]{30,}'],
  ['a GitHub token', 'github_pat_', '\\w{22,}'],
  ['a GitLab token', 'glpat-', '[\\w-]{20,}'],
  ['a Slack token', 'xox[abeprs]-', '[A-Za-z0-9-]{10,}'],
  ['the URL of a Slack webhook', 'hooks\\.slack\\.com/services/', 'T\\w+/B\\w+/\\w{16,}'],
  ['an AWS access key', 'A[KS]IA', '[A-Z0-9]{16}\\b'],
  ['a Google API key', 'AIza', '[\\w-]{35}'],
  ['an OpenAI or Anthropic key', 'sk-(?:proj-|ant-|svcacct-)?', '(?=[\\w-]{0,200}\\d)[A-Za-z0-9][\\w-]{19,}'],
  ['a SendGrid key', 'SG\\.', '[\\w-]{16,}\\.[\\w-]{16,}'],
  ['an npm token', 'npm_', '[A-Za-z0-9]{36}'],
  ['a HubSpot token', 'pat-[a-z]{2}\\d-', '[0-9a-f-]{36}'],
  ['a Shopify token', 'shp(?:at|ca|pa|ss)_', '[0-9a-f]{32}'],
  ['the token of a Telegram bot', 'bot\\d{8,10}:', '[\\w-]{35}'],
  ['a JSON Web Token', 'eyJ', '[\\w-]{8,}\\.eyJ[\\w-]{8,}\\.[\\w-]{8,}'],
  ['a private key', '-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----', '[^-]{10,}'],
]

const KNOWN_KEY = new RegExp(
  KNOWN_KEYS.map(([, prefix, secret]) => `((?<![\\w-])${prefix})(${secret})`).join('|'),
  'g',
)

/** The password of `user:password@` in a URL. */
const URL_PASSWORD = /(:\/\/[^:/?#\s@]{0,200}:)([^/?#\s"'<>]{1,500})(?=@)/g

/** The scheme of an Authorization header. */
const SCHEME_NAME = /^\s*(?:bearer|basic|token|apikey|api-key)\s+/i
const SCHEME = new RegExp(`(${SCHEME_NAME.source})(\\S+)\\s*$`, 'i')

/** `name=value` in queries, forms and connection strings. */
const ASSIGNMENT = /((?<![^?&;,\s#])([^=?&;,\s#"']{1,100})=)([^&;,\s#"']+)/g

/** The query or fragment of a URL in a text. */
const URL_QUERY = /(?<=[\w/])[?#][^\s"'<>?#]*=[^\s"'<>]*/g
const PARAMETER = /([?&#;]([^=?&#;]{1,100})=)([^&#;]+)/g

/** `"name": "value"` in JSON text. */
const MEMBER = /("([^"\\]{1,100})"\s{0,10}:\s{0,10}")((?:[^"\\]|\\.)+)/g

/** Masks everything in a text that looks like a credential. Text that only resembles one is masked too. */
export const maskText = (text: string): string =>
  replaceKeys(text.replace(SCHEME, `$1${MASK}`), MASK)
    .replace(URL_QUERY, (query) => query.replace(PARAMETER, maskParameter))
    .replace(ASSIGNMENT, maskNamed)
    .replace(MEMBER, maskNamed)

/** Replaces known keys, except for their prefix, and passwords in URLs. */
export const replaceKeys = (text: string, replacement: string): string =>
  text
    .replace(KNOWN_KEY, (_, ...groups: (string | undefined)[]) => {
      const at = groups.findIndex((group) => group !== undefined)
      return `${groups[at]}${replacement}`
    })
    .replace(URL_PASSWORD, `$1${replacement}`)

const maskNamed = (whole: string, start: string, name: string) =>
  isSecretName(decoded(name)) ? `${start}${MASK}` : whole

const maskParameter = (whole: string, start: string, name: string) =>
  isSecretParameter(decoded(name)) ? `${start}${MASK}` : whole

/**
 * What a literal value looks like, such as "a Stripe key"; undefined if it does not look like a credential.
 * Placeholders and plain words do not.
 * @param name the name of the header, parameter or member that holds the value, if its name counts.
 */
export function credentialIn(text: string, name?: string): string | undefined {
  if (text.length < LEAST) return undefined
  for (const match of text.matchAll(KNOWN_KEY)) {
    const at = match.slice(1).findIndex((group) => group !== undefined)
    return KNOWN_KEYS[at / 2]![0]
  }
  if (text.includes('://'))
    for (const [, , password] of text.matchAll(URL_PASSWORD))
      if (isLiteralSecret(password!)) return 'a password in a URL'
  const [, scheme, value] = SCHEME.exec(text) ?? []
  if (scheme && value) {
    const kind = scheme.trim().toLowerCase()
    if (kind === 'basic' ? isBasic(value) : isLiteralSecret(value))
      return `${kind[0]!.toUpperCase()}${kind.slice(1)} credentials`
    return undefined
  }
  if (name !== undefined && isSecretName(name) && isSecretValue(name, text.replace(SCHEME_NAME, '')))
    return `a value of ${name}`
  const hasAssignment = text.includes('=')
  for (const [query] of hasAssignment ? text.matchAll(URL_QUERY) : [])
    for (const [, , given, value] of query.matchAll(PARAMETER)) {
      const named = decoded(given!)
      if (isSecretParameter(named) && isSecretValue(named, decoded(value!))) return `a value of ${named}`
    }
  const patterns = [...(hasAssignment ? [ASSIGNMENT] : []), ...(text.includes('"') ? [MEMBER] : [])]
  for (const pattern of patterns)
    for (const [, , given, value] of text.matchAll(pattern)) {
      const named = decoded(given!)
      if (isSecretName(named) && isSecretValue(named, decoded(value!))) return `a value of ${named}`
    }
  return undefined
}

/** The value of a name such as `token_url`; the parts of the URL are checked. */
const IS_URL = /^https?:\/\//i

/** A cookie is a list of values with names. */
const isSecretValue = (name: string, value: string) =>
  /cookie/i.test(name)
    ? value.split(';').some((pair) => isLiteralSecret(pair.slice(pair.indexOf('=') + 1)))
    : !IS_URL.test(value) && isLiteralSecret(value, /passw|secret|credential/i.test(name) ? 6 : 8)

/** Words with separators, such as `none`, `YOUR_API_KEY` or `created_at`. */
const WORDS = /^\/?[\p{L}]{1,20}(?:[ _.,:'@/-]{1,2}[\p{L}]{1,20})*[.!?…]?$/u

/** Values that stand for others: `<token>`, `[masked]`, `${TOKEN}`, `$TOKEN`, `%TOKEN%`, `***`, `xxx`, `...`. */
const STAND_IN = /^(<[^>]*>|\[[^\]]*\]|\$?\{[^}]*\}|\$\w+|%\w+%|[*x•._-]+)$/i

/** Shorter values are no secrets. */
const LEAST = 6

function isLiteralSecret(value: string, minLength = LEAST): boolean {
  const text = value.trim()
  if (text.length < minLength || hasPlaceholder(text)) return false
  return !WORDS.test(text) && !STAND_IN.test(text) && !/^[\d.,:\s-]+$/.test(text)
}

/** Base64 of `user:password`. Letters alone can be a word, so the decoded text decides. */
const isBasic = (value: string) =>
  /^[A-Za-z0-9+/]{6,}=*$/.test(value.trim()) &&
  /^[ -~]*:[ -~]*$/.test(Buffer.from(value, 'base64').toString('latin1'))

const hasPlaceholder = (text: string) => /\{\{.*\}\}/s.test(text)

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
