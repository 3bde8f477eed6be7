import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'

/**
 * The client address of a request: the socket address, or behind `trustedProxies` proxies the X-Forwarded-For entry
 * that the outermost proxy added. Entries are counted from the right: the client can forge all entries further left. An
 * IPv4-mapped IPv6 address is returned as IPv4.
 */
export function clientIp(request: IncomingMessage, trustedProxies: number): string {
  const socket = request.socket.remoteAddress ?? ''
  const forwarded = String(request.headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
  const hops = [...forwarded, socket]
  const address = hops[Math.max(0, hops.length - 1 - trustedProxies)]!
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address
}

/** The unit for limits per client: an IPv4 address, or an IPv6 /64, in which a client can choose any address. */
export function subnetOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address
  const parts = ipaddr.IPv6.parse(address).parts.slice(0, 4)
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`
}

/**
 * Whether `address` matches an entry of `list`: an address or a CIDR range. An IPv4 address also matches as its
 * IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2), so that `::/0` is every address.
 */
export function ipMatches(address: string, list: readonly string[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const ip = ipaddr.process(address)
  const forms = ip instanceof ipaddr.IPv4 ? [ip, ip.toIPv4MappedAddress()] : [ip]
  return list.some((entry) => {
    const range = parseRange(entry)
    return range !== undefined && forms.some((form) => form.kind() === range[0].kind() && form.match(range))
  })
}

/** Whether `entry` is an address or a CIDR range. */
export const isIpOrRange = (entry: string) => parseRange(entry) !== undefined

function parseRange(entry: string): [ipaddr.IPv4 | ipaddr.IPv6, number] | undefined {
  if (ipaddr.isValidCIDR(entry)) return ipaddr.parseCIDR(entry)
  if (!/^[0-9]+(\.[0-9]+){3}$|:/.test(entry) || !ipaddr.isValid(entry)) return undefined
  const ip = ipaddr.process(entry)
  return [ip, ip.kind() === 'ipv4' ? 32 : 128]
}
