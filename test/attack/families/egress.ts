import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHttp } from '../../../activities/http/client.ts'
import { PRIVATE_HOSTS } from '../../support/private-hosts.ts'
import type { Family, Tally } from '../family.ts'
import type { Ground } from '../ground.ts'

/**
 * Calls to private addresses: spelled in every way, behind names that change, behind redirects, and through the stack.
 */
export const egress: Family = {
  name: 'egress',
  title: 'calls to private addresses',
  async run(ground, tally) {
    let hits = 0
    const canary = createServer((_, response) => {
      hits++
      response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end()
    })
    await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve))
    const { port } = canary.address() as AddressInfo
    try {
      await spelled(port, tally)
      await rebinding(port, tally)
      tally.attempt(hits === 0, `${hits} calls reached this machine`)
      await redirected(port, tally)
    } finally {
      canary.closeAllConnections()
      canary.close()
    }
    await throughTheStack(ground, tally)
  },
}

type Resolve = NonNullable<Parameters<typeof createHttp>[0]['resolve']>

/** The code of the error of a call, or its status. */
async function outcomeOf(url: string, allow: string[], resolve?: Resolve): Promise<string> {
  const http = createHttp({ allow, ...(resolve && { resolve }) })
  try {
    const { status } = await http.call(
      { method: 'GET', url },
      { signal: new AbortController().signal, timeoutMs: 5_000 },
    )
    return String(status)
  } catch (error) {
    return String((error as { code?: string }).code)
  } finally {
    await http.close()
  }
}

async function spelled(port: number, tally: Tally): Promise<void> {
  for (const host of PRIVATE_HOSTS)
    for (const url of [
      `http://${host}:${port}/`,
      `https://${host}:${port}/`,
      `http://example.com@${host}:${port}/`,
      `HTTP:\\\\${host}:${port}\\`,
    ]) {
      const outcome = await outcomeOf(url, [])
      tally.attempt(['egress_refused', 'invalid_url'].includes(outcome), `${url}: ${outcome}`)
    }
}

/** Names whose address is private from some lookup on, or among public ones. No public address is connected to. */
async function rebinding(port: number, tally: Tally): Promise<void> {
  const LOCAL = { address: '127.0.0.1', family: 4 }
  const PUBLIC = { address: '93.184.216.34', family: 4 }
  const MAPPED = { address: '::ffff:127.0.0.1', family: 6 }
  for (const [what, addresses] of Object.entries({
    private: [LOCAL],
    'public and private': [PUBLIC, LOCAL],
    'private and public': [LOCAL, PUBLIC],
    'mapped to IPv6': [MAPPED],
    'public and mapped': [PUBLIC, MAPPED],
  })) {
    const outcome = await outcomeOf(`http://rebinding.test:${port}/`, [], async () => addresses)
    tally.attempt(outcome === 'egress_refused', `a name that is ${what}: ${outcome}`)
  }
  // The first lookup is that of the check, if there were one before that of the socket.
  for (let after = 0; after < 3; after++) {
    let lookups = 0
    const outcome = await outcomeOf(`http://rebinding.test:${port}/`, ['127.0.0.1/32'], async () =>
      lookups++ <= after ? [{ address: '10.0.0.1', family: 4 }] : [LOCAL],
    )
    tally.attempt(outcome === 'egress_refused', `a name that changes after ${after + 1} lookups: ${outcome}`)
  }
}

/** The canary answers with a redirect to the metadata service. */
async function redirected(port: number, tally: Tally): Promise<void> {
  const outcome = await outcomeOf(`http://127.0.0.1:${port}/`, ['127.0.0.1/32'])
  tally.attempt(outcome === 'egress_refused', `a redirect to the metadata service: ${outcome}`)
}

/** Through a node test and the settings of webhooks; the stack may call this machine alone. */
async function throughTheStack({ send, attacker }: Ground, tally: Tally): Promise<void> {
  const bearer = { Authorization: `Bearer ${attacker.key}` }
  const isLocal = (host: string) =>
    /^(?:127|::ffff:(?:127|7f)|::1$)/.test(new URL(`http://${host}/`).hostname.replace(/^\[/, ''))
  const hosts = [
    ...PRIVATE_HOSTS.filter((host) => URL.canParse(`http://${host}/`) && !isLocal(host)),
    'made-up.example',
    '8.8.8.8',
  ]
  for (const host of hosts) {
    const url = `http://${host}/`
    const body = { node_type: 'api_request', config: { url }, confirm: true }
    const tested = await send('POST', '/v1/workflows/nodes/test', bearer, body)
    tally.attempt(
      /"code":"(?:egress_refused|invalid_url)"/.test(tested.text),
      `a node test of ${url}: ${tested.text.slice(0, 200)}`,
    )
    const hook = { name: 'Attack', url, events: ['contact.created'] }
    const { status } = await send('POST', '/v1/webhooks/outgoing', bearer, hook)
    tally.attempt(status === 422, `a webhook to ${url}: ${status}`)
  }
}
