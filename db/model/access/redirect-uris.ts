/**
 * Where a client may have people sent back to, with a code in the address: its own https address, or a program on the
 * person's machine (RFC 8252): a loopback address, or a scheme of its own.
 */

const MAX_LENGTH = 1_000
const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost']

const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/

/**
 * Schemes of well-known programs. Others need a dot, as RFC 8252 requires (`com.example.app`): a scheme without one may
 * belong to any program of the system, and some do harm with what they are given.
 */
const SCHEMES = ['cursor', 'vscode', 'vscode-insiders', 'vscodium', 'windsurf', 'zed', 'claude', 'raycast']

/** What is wrong with a redirect URI; undefined if it may be used. */
export function flawOfRedirectUri(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return `has more than ${MAX_LENGTH} characters`
  // Browsers drop some control characters, and read a backslash as a slash.
  if (!/^[\x21-\x5b\x5d-\x7e]+$/.test(text) || !URL.canParse(text)) return 'is not an absolute URL'
  const { protocol, username, password, hostname } = new URL(text)
  if (text.includes('#')) return 'must have no fragment'
  if (username || password) return 'must have no user name or password'
  // It stands in the policy of the consent page, where a semicolon would begin another rule.
  if (protocol === 'https:')
    return HOST.test(hostname) ? undefined : 'has a host that is not a name or address'
  if (protocol === 'http:')
    return LOOPBACK.includes(hostname)
      ? undefined
      : 'must use https, or http with 127.0.0.1, [::1] or localhost'
  const scheme = protocol.slice(0, -1)
  return SCHEMES.includes(scheme) || /^[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+$/.test(scheme)
    ? undefined
    : `must use https, http on a loopback address, or a scheme of a domain, such as com.example.app: not ${scheme}`
}

/**
 * Whether a request may use this URI: it is exactly one of the client's, except for the port of a loopback address, which
 * a program only knows when it listens (RFC 8252, 7.3).
 */
export const isRegistered = (text: string, registered: readonly string[]): boolean =>
  flawOfRedirectUri(text) === undefined &&
  registered.some((one) => one === text || (isLoopback(one) && withoutPort(one) === withoutPort(text)))

function isLoopback(text: string): boolean {
  const { protocol, hostname } = new URL(text)
  return protocol === 'http:' && LOOPBACK.includes(hostname)
}

/** The text itself, not a normal form of it: `/a/../b` is not `/b`. */
const withoutPort = (text: string): string =>
  text.replace(/^(http:\/\/(?:\[[^\]/]*\]|[^:/?]+)):\d{1,5}(?=[/?]|$)/, '$1')

/** Who gets the code, for people: a host, or a program on their machine. */
export function receiverOf(text: string): { host: string; isLocal: boolean } {
  const { protocol, hostname, host } = new URL(text)
  if (protocol === 'https:') return { host, isLocal: false }
  return { host: protocol === 'http:' ? hostname : protocol.slice(0, -1), isLocal: true }
}

/** The address with further parameters. A scheme of a program may have a query, too. */
export function withParameters(text: string, parameters: Record<string, string | undefined>): string {
  const added = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) added.set(name, value)
  return `${text}${text.includes('?') ? '&' : '?'}${added}`
}
