import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'

/** The addresses of a name. Throws an error with a code of the system's resolver: ENOTFOUND, EAI_AGAIN. */
export type Resolve = (host: string) => Promise<LookupAddress[]>

/** What a machine knows of names. */
interface Names {
  resolver: Resolver
  /** The addresses of its hosts file. */
  hosts: ReadonlyMap<string, LookupAddress[]>
  /** The domains in which it looks for a name besides. */
  search: readonly string[]
}

export interface ResolveOptions {
  /** Servers of DNS, as `address:port`; default: those of the system. */
  servers?: readonly string[]
  hostsFile?: string
  configFile?: string
}

/** A server that does not answer ends a lookup after so long: with both tries, before the connection does. */
const DNS = { timeout: 2_000, tries: 2 }
/** Changes of the system's files are seen after so long. */
const KEPT_MS = 30_000

/**
 * Resolves names by DNS without threads, by the system's hosts file, servers and search domains. The system's resolver
 * (`dns.lookup`) has two lookups in progress in a process: with ten names of one organization whose servers do not
 * answer, that of another organization's call took 50 s. Other sources than these, such as multicast DNS, are not asked.
 */
export function createResolve(options: ResolveOptions = {}): Resolve {
  let known: { at: number; names: Promise<Names> } | undefined
  return async (host) => {
    const name = host.replace(/\.$/, '').toLowerCase()
    if (!known || Date.now() - known.at > KEPT_MS) known = { at: Date.now(), names: readNames(options) }
    const { hosts, search, resolver } = await known.names
    const own = hosts.get(name)
    if (own) return own
    // RFC 6761: such names are of the machine itself, whatever DNS says.
    if (name === 'localhost' || name.endsWith('.localhost')) return LOOPBACK
    const within = host.endsWith('.') ? [] : search.map((domain) => `${name}.${domain}`)
    const tried = name.includes('.') ? [name, ...within] : [...within, name]
    for (const one of tried) {
      const found = await lookUp(resolver, one)
      if (found.length > 0) return found
    }
    throw failure('ENOTFOUND', host)
  }
}

const LOOPBACK: LookupAddress[] = [{ address: '127.0.0.1', family: 4 }]

/** The name exists, but has no such address; or it does not exist. */
const ABSENT = ['ENOTFOUND', 'ENODATA']

/** The addresses of both families; none if the name has none. Throws if no server tells. */
async function lookUp(resolver: Resolver, name: string): Promise<LookupAddress[]> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = ([v4, v6] as const).flatMap((answer, i) =>
    answer.status === 'fulfilled'
      ? answer.value.map((address) => ({ address, family: i === 0 ? 4 : 6 }))
      : [],
  )
  const failed = [v4, v6].filter((answer) => answer.status === 'rejected')
  if (found.length === 0 && failed.some(({ reason }) => !ABSENT.includes(reason.code)))
    throw failure('EAI_AGAIN', name)
  return found
}

const failure = (code: string, host: string) => Object.assign(new Error(`${code} ${host}`), { code })

async function readNames({
  servers,
  hostsFile = '/etc/hosts',
  configFile = '/etc/resolv.conf',
}: ResolveOptions): Promise<Names> {
  const [hosts, config] = await Promise.all([linesOf(hostsFile), linesOf(configFile)])
  const resolver = new Resolver(DNS)
  if (servers) resolver.setServers(servers)
  return {
    resolver,
    hosts: hostsIn(hosts),
    // As the system's resolver does, the last line counts.
    search: config.findLast(([key]) => key === 'search' || key === 'domain')?.slice(1) ?? [],
  }
}

/** The words of each line without comments; no lines of a file that is not there. */
async function linesOf(file: string): Promise<string[][]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').map((line) =>
    line
      .replace(/[#;].*/, '')
      .trim()
      .toLowerCase()
      .split(/\s+/),
  )
}

function hostsIn(lines: string[][]): Map<string, LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>()
  for (const [address = '', ...names] of lines) {
    const family = isIP(address)
    if (family === 0) continue
    for (const name of names) hosts.set(name, [...(hosts.get(name) ?? []), { address, family }])
  }
  return hosts
}
