import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { type Json, rawMcp } from '../../support/mcp.ts'
import type { Family, Tally } from '../family.ts'
import type { Ground, Party } from '../ground.ts'
import { callTool, type ToolCall } from '../mcp.ts'
import { Caller } from '../workflows.ts'

/** What is around the tools: confirmations that nobody gave, pages of other sites, requests that are too large. */
export const mcpRequests: Family = {
  name: 'mcp-requests',
  title: 'forged confirmations, foreign origins and hosts, and hostile requests of /mcp',
  async run(ground, tally) {
    await forgedConfirmations(ground, tally)
    await otherSites(ground, tally)
    await hostileRequests(ground, tally)
  },
}

const ASKS = { elicitation: { form: {} } }
const ACCEPTED = { confirm: { action: 'accept', content: { confirm: true } } }

/** A contact that each attempt would delete without a confirmation. */
async function forgedConfirmations(ground: Ground, tally: Tally): Promise<void> {
  const { attacker, victim, send } = ground
  const own = new Caller(ground, attacker)
  const { id } = await own.done('POST', '/objects/contacts', { last_name: 'Kept' })
  const { id: other } = await own.done('POST', '/objects/contacts', { last_name: 'Other' })
  const remove = (of: unknown): ToolCall => ['delete_record', { kind: 'contacts', id: of, confirm: true }]
  const ask = async ({ key }: Pick<Party, 'key'>, call: ToolCall) =>
    (await callTool(ground, key, call, {}, ASKS)).result?.requestState as string
  const state = await ask(attacker, remove(id))
  tally.attempt(typeof state === 'string', 'nobody is asked: there is no confirmation to forge')
  const sibling = { key: await attacker.keyWith(['contacts:write']) }
  const { id: foreign } = await new Caller(ground, victim).done('POST', '/objects/contacts', {
    last_name: 'x',
  })
  const states: [what: string, requestState: unknown][] = [
    ['no state', undefined],
    ['an empty state', ''],
    ['a made-up state', Buffer.from(JSON.stringify({ key: randomUUID() })).toString('base64url')],
    ['the state of another contact', await ask(attacker, remove(other))],
    ['the state of another key', await ask(sibling, remove(id))],
    ['the state of another organization', await ask(victim, remove(foreign))],
    ...altered(state),
  ]
  for (const [what, requestState] of states) {
    const more = { inputResponses: ACCEPTED, ...(requestState !== undefined && { requestState }) }
    const { error, result, text } = await callTool(ground, attacker.key, remove(id), more, ASKS)
    const isRefused = error !== undefined || result?.resultType === 'input_required'
    tally.attempt(isRefused, `${what}: ${text.slice(0, 300)}`)
  }
  const answers: [string, Json][] = [
    ['`confirm` of the model', {}],
    ['a declined form', { confirm: { action: 'decline', content: { confirm: true } } }],
    ['a cancelled form', { confirm: { action: 'cancel' } }],
    ['a text for true', { confirm: { action: 'accept', content: { confirm: 'true' } } }],
    ['another field', { other: { action: 'accept', content: { confirm: true } } }],
  ]
  for (const [what, inputResponses] of answers) {
    const more = { requestState: state, inputResponses }
    const { result, text } = await callTool(ground, attacker.key, remove(id), more, ASKS)
    tally.attempt(!result?.structuredContent?.deleted, `${what} deletes: ${text.slice(0, 300)}`)
  }
  const bearer = { Authorization: `Bearer ${attacker.key}` }
  const { status } = await send('GET', `/v1/objects/contacts/${id}`, bearer)
  tally.attempt(status === 200, 'the contact was deleted without a confirmation')
  // Without this, the attempts above would prove nothing.
  const more = { inputResponses: ACCEPTED, requestState: state }
  const { result } = await callTool(ground, attacker.key, remove(id), more, ASKS)
  tally.attempt(result?.structuredContent?.deleted === true, 'a right confirmation is refused')
}

/** The state with another character at each of some places, cut off, and with an addition. */
function altered(state: string): [string, string][] {
  const swap = (at: number) => {
    const one = state[at] === 'A' ? 'B' : 'A'
    return state.slice(0, at) + one + state.slice(at + 1)
  }
  // The last characters of base64url may have bits without a meaning.
  const places = Array.from({ length: 20 }, (_, i) => Math.floor(((state.length - 4) * i) / 20))
  return [
    ...places.map((at): [string, string] => [`another character at ${at}`, swap(at)]),
    ['a state that is cut off', state.slice(0, -8)],
    ['a state with an addition', `${state}AAAA`],
  ]
}

/** Requests that pages of other sites make a browser send, and names that are not the service's. */
async function otherSites({ stack, attacker }: Ground, tally: Tally): Promise<void> {
  const { headers, body } = rawMcp('tools/list')
  const bearer = { ...headers, Authorization: `Bearer ${attacker.key}` }
  const { host } = new URL(stack.apiUrl)
  const refused: [string, string][] = [
    ['Origin', 'https://evil.example'],
    ['Origin', 'null'],
    ['Origin', `https://${host}.evil.example`],
    ['Origin', 'http://localhost:1'],
    ['Host', 'evil.example'],
    ['Host', `evil.example:${host.split(':')[1]}`],
    ['Host', 'localhost.evil.example'],
    ['Host', '127.0.0.1.evil.example'],
  ]
  const own = await statusOf(stack.apiUrl, { ...bearer, Host: host }, JSON.stringify(body))
  tally.attempt(own === 200, `the service's own name is refused with ${own}`)
  for (const [name, value] of refused) {
    const status = await statusOf(stack.apiUrl, { ...bearer, [name]: value }, JSON.stringify(body))
    tally.attempt(status === 403, `${name}: ${value} is answered with ${status}`)
  }
}

/** `fetch` sends neither a `Host` nor an `Origin` of one's choice. */
function statusOf(apiUrl: string, headers: Record<string, string>, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(apiUrl)
    const all = { 'Content-Type': 'application/json', ...headers }
    const sent = request({ hostname, port, path: '/mcp', method: 'POST', headers: all }, (response) => {
      response.resume()
      resolve(response.statusCode!)
    })
    sent.on('error', reject).end(body)
  })
}

/** Credentials, methods and bodies that are refused, and what they must not do to the next request. */
async function hostileRequests({ attacker, send }: Ground, tally: Tally): Promise<void> {
  const { headers, body } = rawMcp('tools/list')
  const bearer = { ...headers, Authorization: `Bearer ${attacker.key}` }
  const text = JSON.stringify(body)
  const session = await attacker.session('owner')
  const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`
  const typed = { ...bearer, 'Content-Type': 'application/json' }
  const attempts: [
    what: string,
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: unknown,
  ][] = [
    ['no key', 'POST', '/mcp', headers, body],
    ['a session', 'POST', '/mcp', { ...headers, ...session }, body],
    ['a key in the query', 'POST', `/mcp?key=${attacker.key}&access_token=${attacker.key}`, headers, body],
    ['a key of another scheme', 'POST', '/mcp', { ...headers, Authorization: `Basic ${attacker.key}` }, body],
    ['GET', 'GET', '/mcp', bearer],
    ['DELETE', 'DELETE', '/mcp', bearer],
    ['a form', 'POST', '/mcp', { ...bearer, 'Content-Type': 'text/plain' }, text],
    ['a batch', 'POST', '/mcp', typed, `[${text},${text}]`],
    ['a body above the limit', 'POST', '/mcp', typed, `{"a":"${'x'.repeat(1_100_000)}"}`],
    ['a body of 20,000 levels', 'POST', '/mcp', typed, deep],
    ['no JSON', 'POST', '/mcp', typed, '{'],
  ]
  for (const [what, method, path, sent, content] of attempts) {
    const { status } = await send(method, path, sent, content)
    tally.attempt(status >= 400 && status < 500, `${what} is answered with ${status}`)
  }
  const given = { kind: 'contacts', fields: { last_name: 'x' }, idempotency_key: 'a\r\nX-Injected: 1' }
  const injected = rawMcp('tools/call', { name: 'create_record', arguments: given })
  const { text: refused } = await send('POST', '/mcp', { ...bearer, ...injected.headers }, injected.body)
  tally.attempt(
    /validation_error|invalid_request/.test(refused),
    `a key with line ends: ${refused.slice(0, 200)}`,
  )
  const { status } = await send('POST', '/mcp', bearer, body)
  tally.attempt(status === 200, `the next request is answered with ${status}`)
}
