import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { subnetOf } from './client-ip.ts'

/** Milliseconds after which a connection above the limit is closed if it sent no request. */
const IDLE_MS = 5_000
/** Above this many times the limit, connections are closed at once: not even a refusal is written. */
const HARD = 2

/** A connection above the limit of its address: its request gets 503. */
export type CountedSocket = Socket & { isAboveLimit?: true }

/** Limits the connections of one address, so that it does not take all that the process accepts. */
export function limitByAddress(server: Server, most: number): void {
  const open = new Map<string, number>()
  server.on('connection', (socket: CountedSocket) => {
    const address = subnetOf((socket.remoteAddress ?? '').replace(/^::ffff:/, ''))
    const count = (open.get(address) ?? 0) + 1
    open.set(address, count)
    socket.once('close', () => {
      const left = open.get(address)! - 1
      if (left > 0) open.set(address, left)
      else open.delete(address)
    })
    if (count > HARD * most) socket.destroy()
    else if (count > most) {
      socket.isAboveLimit = true
      setTimeout(() => socket.destroy(), IDLE_MS).unref()
    }
  })
}

/** Counts the requests in progress of each client: behind a proxy, connections are those of the proxy. */
export class RequestsByAddress {
  private readonly open = new Map<string, number>()
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  /** @returns a function to call at the end of the request; undefined if the client has too many. */
  begin(clientIp: string): (() => void) | undefined {
    const client = subnetOf(clientIp)
    const count = this.open.get(client) ?? 0
    if (count >= this.most) return undefined
    this.open.set(client, count + 1)
    return () => {
      const left = this.open.get(client)! - 1
      if (left > 0) this.open.set(client, left)
      else this.open.delete(client)
    }
  }
}
