import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type TcpNetConnectOpts } from 'node:net'
import { buildConnector } from 'undici'
import { EgressPolicy } from './egress.ts'
import { createResolver, type ResolveHost } from './resolve-host.ts'

/** The failure of a guarded connection to an address that is not allowed. */
export class EgressRefused extends Error {
  readonly code = 'EGRESS_REFUSED'
}

export interface EgressOptions {
  /** Private networks, as CIDRs, that are allowed. */
  allow: readonly string[]
  /** Hosts and CIDRs: if there are any, nothing else is reached. */
  only?: readonly string[]
  /** Resolves names; default: as the system does. */
  resolve?: ResolveHost
}

/** What a socket is connected by. */
export interface Guard {
  /** Why a host is not connected to; undefined: its addresses are checked by `lookup`, as they are resolved. */
  refusal(host: string): EgressRefused | undefined
  lookup: LookupFunction
}

/**
 * Checks the addresses from the socket's own lookup: no second lookup can return others. The socket does not resolve IP
 * literals, so they are checked before.
 */
export function createGuard(options: EgressOptions): Guard {
  const policy = new EgressPolicy(options.allow, options.only)
  const resolve = shared(options.resolve ?? createResolver())
  const lookup: LookupFunction = (host, { all, family }, callback) => {
    resolve(host).then(
      (found) => {
        const fitting = found.filter((one) => !family || one.family === familyOf(family))
        // One private address among public ones is a DNS rebinding attempt: refuse all.
        const bad = fitting.find((one) => !policy.allows(one.address))
        if (bad) callback(refused(host), '', 0)
        else if (fitting.length === 0) callback(notFound(host), '', 0)
        else if (all) callback(null, fitting)
        else callback(null, fitting[0]!.address, fitting[0]!.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    )
  }
  return {
    lookup,
    refusal(host) {
      if (!policy.lists(host)) return notListed(host)
      const literal = host.replace(/^\[|\]$/g, '')
      return isIP(literal) !== 0 && !policy.allows(literal) ? refused(host) : undefined
    },
  }
}

/** A guarded connector of undici. */
export function guardedConnector(options: EgressOptions & { timeoutMs: number }): buildConnector.connector {
  const { lookup, refusal } = createGuard(options)
  const connect = buildConnector({ lookup, timeout: options.timeoutMs } as buildConnector.BuildOptions &
    Partial<TcpNetConnectOpts>)
  return (target, callback) => {
    const error = refusal(target.hostname)
    if (error) callback(error, null)
    else connect(target, callback)
  }
}

/** Coalesces concurrent lookups of the same name. */
function shared(resolve: ResolveHost): ResolveHost {
  const running = new Map<string, Promise<LookupAddress[]>>()
  return (host: string): Promise<LookupAddress[]> => {
    const before = running.get(host)
    if (before) return before
    const lookup = resolve(host).finally(() => running.delete(host))
    running.set(host, lookup)
    return lookup
  }
}

const familyOf = (family: number | string) => (family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family)

const refused = (host: string) => new EgressRefused(`${host} is a private or special address`)

const notListed = (host: string) =>
  new EgressRefused(`${host} is not listed in EGRESS_ONLY, by the operator of the service`)

const notFound = (host: string) => Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' })
