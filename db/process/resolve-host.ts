import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Resolves names as the system does, by its hosts file, search domains and DNS servers, but not by its resolver: that
 * waits in a thread of the process, and two names whose servers never answer keep all others from being resolved. Here a
 * question is a datagram and a timer.
 */
export type ResolveHost = (host: string) => Promise<LookupAddress[]>

export interface ResolverOptions {
  /** DNS servers, `192.0.2.1:53`; default: those of the system. */
  servers?: string[]
  /** How long a server has for its first answer; it is asked twice. */
  timeoutMs?: number
  /** The folder of `hosts` and `resolv.conf`. */
  folder?: string
}

/** A name's addresses of one family do not wait longer for those of the other, which some servers never answer. */
const OTHER_FAMILY_MS = 500
/** The files are read again after it. */
const FILES_MS = 30_000

const LOOPBACK: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/** What it returns throws an error with the code ENOTFOUND if there is no such name, EAI_AGAIN if no server told. */
export function createResolver(options: ResolverOptions = {}): ResolveHost {
  let read: { until: number; system: System } | undefined
  return async (host) => {
    if (!read || Date.now() > read.until) read = { until: Date.now() + FILES_MS, system: readSystem(options) }
    const { resolver, hosts, search, dots } = read.system
    const name = host.toLowerCase().replace(/\.$/, '')
    const known = hosts.get(name) ?? (/(^|\.)localhost$/.test(name) ? LOOPBACK : undefined)
    if (known) return known
    const below = host.endsWith('.') ? [] : search.map((domain) => `${name}.${domain}`)
    const isShort = name.split('.').length <= dots
    return firstKnown(resolver, isShort ? [...below, name] : [name, ...below])
  }
}

interface System {
  resolver: Resolver
  hosts: Map<string, LookupAddress[]>
  /** Domains in which names are looked for; those with fewer than `dots` dots there first. */
  search: string[]
  dots: number
}

/** Another name is asked for only if it is known that there is none before it. */
async function firstKnown(resolver: Resolver, [name, ...others]: string[]): Promise<LookupAddress[]> {
  try {
    return await addressesOf(resolver, name!)
  } catch (error) {
    if (others.length === 0 || (error as NodeJS.ErrnoException).code !== 'ENOTFOUND') throw error
    return firstKnown(resolver, others)
  }
}

async function addressesOf(resolver: Resolver, name: string): Promise<LookupAddress[]> {
  const found: LookupAddress[][] = []
  const asked = ([4, 6] as const).map(async (family, place) => {
    const addresses = await (family === 4 ? resolver.resolve4(name) : resolver.resolve6(name))
    found[place] = addresses.map((address) => ({ address, family }))
  })
  const ended = Promise.allSettled(asked)
  const isFound = await Promise.any(asked).then(
    () => true,
    () => false,
  )
  if (isFound) {
    await Promise.race([ended, delay(OTHER_FAMILY_MS, undefined, { ref: false })])
    return found.flat()
  }
  const codes = (await ended).map((one) => String((one as PromiseRejectedResult).reason.code))
  const isKnown = codes.every((code) => code === 'ENOTFOUND' || code === 'ENODATA')
  throw Object.assign(new Error(`${name}: ${codes.join(', ')}`), {
    code: isKnown ? 'ENOTFOUND' : 'EAI_AGAIN',
  })
}

function readSystem({ servers, timeoutMs = 2_000, folder = '/etc' }: ResolverOptions): System {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 2 })
  if (servers) resolver.setServers(servers)
  const hosts = new Map<string, LookupAddress[]>()
  for (const [address = '', ...names] of wordsOf(`${folder}/hosts`))
    for (const name of names.map((one) => one.toLowerCase()))
      hosts.set(name, [...(hosts.get(name) ?? []), { address, family: address.includes(':') ? 6 : 4 }])
  let search: string[] = []
  let dots = 1
  for (const [keyword, ...values] of wordsOf(`${folder}/resolv.conf`)) {
    if (keyword === 'search' || keyword === 'domain') search = values.filter((domain) => domain !== '.')
    if (keyword === 'options') dots = Number(/ndots:(\d+)/.exec(values.join(' '))?.[1] ?? dots)
  }
  return { resolver, hosts, search, dots }
}

/** The words of each line without its comment. Empty if there is no such file, as on other systems. */
function wordsOf(path: string): string[][] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return []
  }
  const lines = text.split('\n').map((line) => line.replace(/[#;].*/, '').trim())
  return lines.filter(Boolean).map((line) => line.split(/\s+/))
}
