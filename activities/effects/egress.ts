import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type TcpNetConnectOpts } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'

/** What a guarded connection fails with when its address may not be called. */
export class EgressRefused extends Error {
  readonly code = 'EGRESS_REFUSED'
}

export interface EgressOptions {
  /** CIDRs that may be called although they are private. */
  allow: readonly string[]
  /** How names are resolved; default: the system's resolver. */
  resolve?: (host: string) => Promise<LookupAddress[]>
}

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

/** Everything that is not a plain public address: private, local, documentation, multicast, and tunnels to those. */
const REFUSED: Range[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/32',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
].map((range) => ipaddr.parseCIDR(range))

/** Which addresses may be called. `allow` are CIDRs; throws for one that is none. */
export class EgressPolicy {
  private readonly allowed: Range[]

  constructor(allow: readonly string[]) {
    this.allowed = allow.map((range) => {
      try {
        return ipaddr.parseCIDR(range)
      } catch {
        throw new Error(`EGRESS_ALLOW: ${range} is not a CIDR range such as 10.1.0.0/16`)
      }
    })
  }

  /** @param address an IPv4 or IPv6 address in standard spelling; anything else may not be called. */
  allows(address: string): boolean {
    const bare = address.replace(/%.*$/, '')
    if (isIP(bare) === 0) return false
    const parsed = ipaddr.parse(bare)
    // ::ffff:a.b.c.d connects to a.b.c.d.
    const real =
      parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed
    return within(real, this.allowed) || !within(real, REFUSED)
  }
}

const within = (address: Address, ranges: Range[]) =>
  ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))

/**
 * undici's connector with the check where no second look-up can come between: on the very addresses that the socket
 * may connect to. The socket does not look literals up, so they are checked before.
 */
export function guardedConnector(options: EgressOptions & { timeoutMs: number }): buildConnector.connector {
  const policy = new EgressPolicy(options.allow)
  const resolve = options.resolve ?? systemResolve
  const lookup: LookupFunction = (host, { all, family }, callback) => {
    resolve(host).then(
      (found) => {
        const fitting = found.filter((one) => !family || one.family === familyOf(family))
        // One private address among public ones is an attempt to get through: refuse all.
        const bad = fitting.find((one) => !policy.allows(one.address))
        if (bad) callback(refused(host), '', 0)
        else if (fitting.length === 0) callback(notFound(host), '', 0)
        else if (all) callback(null, fitting)
        else callback(null, fitting[0]!.address, fitting[0]!.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    )
  }
  const connect = buildConnector({ lookup, timeout: options.timeoutMs } as buildConnector.BuildOptions &
    Partial<TcpNetConnectOpts>)
  return (target, callback) => {
    const literal = target.hostname.replace(/^\[|\]$/g, '')
    if (isIP(literal) !== 0 && !policy.allows(literal)) callback(refused(target.hostname), null)
    else connect(target, callback)
  }
}

const systemResolve = (host: string) =>
  new Promise<LookupAddress[]>((resolve, reject) =>
    dnsLookup(host, { all: true }, (error, found) => (error ? reject(error) : resolve(found))),
  )

const familyOf = (family: number | string) => (family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family)

const refused = (host: string) => new EgressRefused(`${host} is a private or special address`)

const notFound = (host: string) => Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' })
