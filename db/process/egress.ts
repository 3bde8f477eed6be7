import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

const ranges = (list: string[]): Range[] => list.map((range) => ipaddr.parseCIDR(range))

/** Global unicast: the only IPv6 addresses that the registries assign. All other addresses are refused. */
const GLOBAL_UNICAST = ranges(['2000::/3'])

/**
 * The special-purpose ranges of IANA's registries (IPv4; IPv6 within 2000::/3): private, local, documentation,
 * benchmarks, multicast, and tunnels to these.
 */
const SPECIAL = ranges([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Protocol assignments: Teredo, benchmarks, AMT, ORCHID, DRIP.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3ffe::/16',
  '3fff::/20',
])

/**
 * Metadata services, which give the machine's credentials to every caller: AWS, Azure, Google, Oracle, Alibaba. Azure's
 * address is public; some others are in private networks that operators allow.
 */
const METADATA = ranges([
  '168.63.129.16/32',
  '169.254.169.254/32',
  '169.254.170.2/32',
  '169.254.170.23/32',
  '192.0.0.192/32',
  '100.100.100.200/32',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
])

export const isCidr = (range: string): boolean => ipaddr.isValidCIDR(range)

/** `api.example.com`, or `*.example.com` for every name below it. */
export const isHostPattern = (text: string): boolean =>
  /^(?:\*\.)?(?!\d+(?:\.|$))[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/i.test(text) && text.length <= 253

/**
 * Decides which addresses may be called: public ones. `allow`: additional CIDR ranges; throws for an invalid range. A
 * metadata service is allowed only by a range that is its single address. `only`: hosts and CIDR ranges; if there are
 * any, nothing else may be called.
 */
export class EgressPolicy {
  private readonly allowed: Range[]
  private readonly onlyRanges: Range[]
  private readonly onlyHosts: string[]

  constructor(allow: readonly string[], only: readonly string[] = []) {
    this.allowed = ranges([...allow])
    this.onlyRanges = ranges(only.filter(isCidr))
    this.onlyHosts = only.filter((one) => !isCidr(one)).map((one) => one.toLowerCase())
  }

  /**
   * Whether the host of a URL is listed, if there is a list. A range lists the URLs with an address in it; a name must be
   * listed itself, so that no other name is even looked up.
   */
  lists(host: string): boolean {
    if (this.onlyRanges.length + this.onlyHosts.length === 0) return true
    const bare = host
      .replace(/^\[|\]$/g, '')
      .replace(/\.$/, '')
      .toLowerCase()
    if (isIP(bare) !== 0) return within(realAddress(bare), this.onlyRanges)
    return this.onlyHosts.some((one) => (one.startsWith('*.') ? bare.endsWith(one.slice(1)) : bare === one))
  }

  /** @param address an IPv4 or IPv6 address in standard notation; any other text is refused. */
  allows(address: string): boolean {
    const bare = address.replace(/%.*$/, '')
    if (isIP(bare) === 0) return false
    const real = realAddress(bare)
    const allowed = this.allowed.filter((range) => within(real, [range]))
    if (within(real, METADATA)) return allowed.some(([range, bits]) => bits === lengthOf(range))
    return allowed.length > 0 || isPublic(real)
  }
}

/** ::ffff:a.b.c.d connects to a.b.c.d. */
function realAddress(address: string): Address {
  const parsed = ipaddr.parse(address)
  return parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed
}

const within = (address: Address, ranges: Range[]) =>
  ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))

const isPublic = (address: Address) =>
  (address.kind() === 'ipv4' || within(address, GLOBAL_UNICAST)) && !within(address, SPECIAL)

/** The length in bits. */
const lengthOf = (address: Address) => address.toByteArray().length * 8
