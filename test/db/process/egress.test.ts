import assert from 'node:assert/strict'
import fc from 'fast-check'
import { EgressPolicy } from '../../../db/process/egress.ts'

/** IANA's special-purpose registries as numbers: [first address, prefix length]. An oracle that shares no code. */
const SPECIAL_V4: [string, number][] = [
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
].map((range) => [range.split('/')[0]!, Number(range.split('/')[1])])
const SPECIAL_V6: [bigint, number][] = [
  // 2001::/23, 2001:db8::/32, 2002::/16, 2620:4f:8000::/48, 3ffe::/16, 3fff::/20
  [0x20010000n << 96n, 23],
  [0x20010db8n << 96n, 32],
  [0x2002n << 112n, 16],
  [0x2620004f8000n << 80n, 48],
  [0x3ffen << 112n, 16],
  [0x3fff0n << 108n, 20],
]
const METADATA = ['168.63.129.16', '169.254.169.254', '169.254.170.2', '192.0.0.192', '100.100.100.200']
const METADATA_V6 = ['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254']

const policy = new EgressPolicy([])
const number4 = (text: string) => text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
const text4 = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')
/** All eight groups, written out. */
const text6 = (value: bigint) =>
  Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16)).join(':')
const inRange6 = (value: bigint, [first, bits]: [bigint, number]) =>
  value >> BigInt(128 - bits) === first >> BigInt(128 - bits)

const v4 = fc.nat({ max: 0xffff_ffff })
const v6 = fc.bigInt({ min: 0n, max: (1n << 128n) - 1n })

describe('the egress policy', () => {
  it('allows an IPv4 address if and only if it is in no special range', () => {
    const isSpecial = (value: number) =>
      SPECIAL_V4.some(([first, bits]) => value >>> (32 - bits) === number4(first) >>> (32 - bits)) ||
      METADATA.includes(text4(value))
    const near = fc
      .tuple(fc.constantFrom(...SPECIAL_V4), fc.nat(), fc.integer({ min: -2, max: 2 }))
      .map(([[first, bits], inside, edge]) => {
        const size = 2 ** (32 - bits)
        const offset = Math.abs(edge) === 2 ? inside % size : edge < 0 ? -1 : edge === 0 ? 0 : size
        return (number4(first) + offset) >>> 0
      })
    fc.assert(
      fc.property(fc.oneof(v4, near), (value) => {
        const address = text4(value)
        assert.equal(policy.allows(address), !isSpecial(value), address)
        // The same address in IPv6 notation connects to the same host.
        const mapped = `::ffff:${address}`
        assert.equal(policy.allows(mapped), !isSpecial(value), mapped)
      }),
      { numRuns: 2_000 },
    )
  })

  it('allows an IPv6 address if and only if it is global unicast and in no special range', () => {
    const global = fc.bigInt({ min: 1n << 125n, max: (1n << 126n) - 1n })
    const special = fc
      .tuple(fc.constantFrom(...SPECIAL_V6), v6)
      .map(([[first, bits], tail]) => first | (tail & ((1n << BigInt(128 - bits)) - 1n)))
    fc.assert(
      fc.property(fc.oneof(v6, global, special), (value) => {
        fc.pre(!inRange6(value, [0xffffn << 32n, 96]))
        const expected =
          inRange6(value, [1n << 125n, 3]) && !SPECIAL_V6.some((range) => inRange6(value, range))
        assert.equal(policy.allows(text6(value)), expected, text6(value))
      }),
      { numRuns: 2_000 },
    )
  })

  it('refuses special ranges by name', () => {
    for (const address of ['2001:2::1', '2001:10::1', '2001:20::1', '2001:3::1', '100:0:0:1::1'])
      assert.equal(policy.allows(address), false, address)
  })

  it('refuses metadata services, also within an allowed network, unless they are listed by themselves', () => {
    const wide = new EgressPolicy(['0.0.0.0/0', '::/0'])
    assert.equal(wide.allows('10.0.0.1'), true)
    assert.equal(wide.allows('fd00::1'), true)
    for (const address of [...METADATA, ...METADATA_V6]) {
      const bits = address.includes(':') ? 128 : 32
      assert.equal(policy.allows(address), false, address)
      assert.equal(wide.allows(address), false, address)
      assert.equal(new EgressPolicy([`${address}/${bits}`]).allows(address), true, address)
    }
    assert.equal(wide.allows('::ffff:169.254.169.254'), false)
  })

  it('refuses any other text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!/^[\d.]+$|:/.test(text))
        assert.equal(policy.allows(text), false)
      }),
    )
  })
})
