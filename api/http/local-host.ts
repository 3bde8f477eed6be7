import { isIP } from 'node:net'

/** Names that the public DNS does not serve: of one label, and of RFC 6761, RFC 6762, RFC 8375 and `.internal`. */
const LOCAL_NAME = /^[^.]+$|\.(localhost|local|home\.arpa|internal|test)$/

/** Whether a `Host` is an address or a local name. `URL.canParse` is false for a text that is not a host. */
export function isLocalHost(host: string): boolean {
  if (!URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 || LOCAL_NAME.test(hostname)
}
