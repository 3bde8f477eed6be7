import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { clientIp, ipMatches, isIpOrRange } from '../../../api/http/client-ip.ts'

describe('the address of a client', () => {
  const request = (forwarded: string | undefined) =>
    ({
      headers: { 'x-forwarded-for': forwarded },
      socket: { remoteAddress: '::ffff:192.0.2.9' },
    }) as unknown as IncomingMessage

  it('is the socket address without trusted proxies, for any header', () => {
    assert.equal(clientIp(request('10.0.0.1'), 0), '192.0.2.9')
  })
  it('is the address that the outermost trusted proxy added, not a forged one', () => {
    assert.equal(clientIp(request('1.1.1.1, 10.0.0.1'), 1), '10.0.0.1')
    assert.equal(clientIp(request('1.1.1.1, 10.0.0.1'), 2), '1.1.1.1')
    assert.equal(clientIp(request(undefined), 2), '192.0.2.9')
  })

  it('matches addresses and ranges of the same family', () => {
    assert.ok(ipMatches('10.1.2.3', ['192.0.2.1', '10.0.0.0/8']))
    assert.ok(ipMatches('::ffff:10.1.2.3', ['10.0.0.0/8']))
    assert.ok(ipMatches('2001:db8::5', ['2001:db8::/32']))
    assert.ok(!ipMatches('11.1.2.3', ['10.0.0.0/8']))
    assert.ok(!ipMatches('nonsense', ['0.0.0.0/0']))
  })
  it('matches an IPv4 address with an IPv6 range that contains its mapped form', () => {
    for (const address of ['192.0.2.1', '::ffff:192.0.2.1']) {
      for (const range of ['::/0', '::ffff:0:0/96', '::ffff:192.0.2.0/120'])
        assert.ok(ipMatches(address, [range]), `${address} in ${range}`)
      for (const range of ['fd00::/8', '::ffff:192.0.3.0/120'])
        assert.ok(!ipMatches(address, [range]), `${address} in ${range}`)
    }
  })
  it('is listed as an address or a CIDR range only', () => {
    assert.ok(isIpOrRange('10.0.0.1') && isIpOrRange('fd00::/8'))
    for (const entry of ['10', '0x7f.1', '10.0.0.0/33', 'example.com', ''])
      assert.ok(!isIpOrRange(entry), entry)
  })
})
