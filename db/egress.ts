import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

/** Addresses that are not public: private, local, documentation, multicast, and tunnels to these. */
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
  '::ffff:0:0:0/96',
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

export const isCidr = (range: string): boolean => ipaddr.isValidCIDR(range)

/** Decides which addresses may be called. `allow`: additional CIDR ranges; throws for an invalid range. */
export class EgressPolicy {
  private readonly allowed: Range[]

  constructor(allow: readonly string[]) {
    this.allowed = allow.map((range) => ipaddr.parseCIDR(range))
  }

  /** @param address an IPv4 or IPv6 address in standard notation; any other text is refused. */
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
