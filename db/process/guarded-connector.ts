import { isIP, type LookupFunction, type TcpNetConnectOpts } from 'node:net'
import { buildConnector } from 'undici'
import { EgressPolicy } from './egress.ts'
import { createResolve, type Resolve } from './resolve.ts'

/** The failure of a guarded connection to an address that is not allowed. */
export class EgressRefused extends Error {
  readonly code = 'EGRESS_REFUSED'
}

export interface EgressOptions {
  /** Private networks, as CIDRs, that are allowed. */
  allow: readonly string[]
  /** Hosts and CIDRs: if there are any, nothing else is reached. */
  only?: readonly string[]
  /** Resolves names; default: by DNS and the system's files. */
  resolve?: Resolve
}

/**
 * A connector of undici that checks the addresses from the socket's own lookup: no second lookup can return others. The
 * socket does not resolve IP literals, so they are checked before.
 */
export function guardedConnector(options: EgressOptions & { timeoutMs: number }): buildConnector.connector {
  const policy = new EgressPolicy(options.allow, options.only)
  const resolve = shared(options.resolve ?? systemResolve)
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
  const connect = buildConnector({ lookup, timeout: options.timeoutMs } as buildConnector.BuildOptions &
    Partial<TcpNetConnectOpts>)
  return (target, callback) => {
    if (!policy.lists(target.hostname)) return callback(notListed(target.hostname), null)
    const literal = target.hostname.replace(/^\[|\]$/g, '')
    if (isIP(literal) !== 0 && !policy.allows(literal)) callback(refused(target.hostname), null)
    else connect(target, callback)
  }
}

/** Coalesces concurrent lookups of the same name. */
function shared(resolve: Resolve): Resolve {
  const running = new Map<string, ReturnType<Resolve>>()
  return (host) => {
    const before = running.get(host)
    if (before) return before
    const lookup = resolve(host).finally(() => running.delete(host))
    running.set(host, lookup)
    return lookup
  }
}

const systemResolve = createResolve()

const familyOf = (family: number | string) => (family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family)

const refused = (host: string) => new EgressRefused(`${host} is a private or special address`)

const notListed = (host: string) =>
  new EgressRefused(`${host} is not listed in EGRESS_ONLY, by the operator of the service`)

const notFound = (host: string) => Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' })
