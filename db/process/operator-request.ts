import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BlockList } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Headers of a reverse proxy on this machine, which forwards requests of any client. */
const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip']

/**
 * Whether an operator's request is allowed: with the given token as its bearer token; without one, from this machine.
 */
export function isFromOperator({ headers, socket }: IncomingMessage, token: string | undefined): boolean {
  if (token !== undefined) return isEqual(headers.authorization ?? '', `Bearer ${token}`)
  const address = socket.remoteAddress ?? ''
  const local = loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
  return local && !PROXY_HEADERS.some((name) => headers[name] !== undefined)
}

function isEqual(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}
