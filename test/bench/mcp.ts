import { connect } from '../../db/postgres/connect.ts'
import { rawMcp } from '../support/mcp.ts'
import type { TestStack } from '../support/stack.ts'
import { type LoadResult, load, type Shot } from './load.ts'
import { inTurns, print, printPairs } from './report.ts'
import { liftLimits } from './setup.ts'

const RECORDS = 200
const ROUNDS = 5
const SECONDS = 3

interface Case {
  name: string
  /** The tool and its arguments. */
  tool: [name: string, given: object]
  /** The request that the tool makes. */
  request: Shot
}

/** Tool calls of /mcp, by one client and by 32; the floor is the same operation as a request of /v1. */
export async function benchMcp(stack: TestStack): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  await liftLimits(db)
  await db.close()
  const headers = { authorization: `Bearer ${stack.key}`, 'content-type': 'application/json' }
  const post = async (path: string, body: object) => {
    const answer = await fetch(stack.apiUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as { id: string }
  }
  const contact = (n: number) => ({
    first_name: `Ada ${n}`,
    last_name: 'Bench',
    email: `ada${n}@example.com`,
  })
  let id = ''
  for (let n = 0; n < RECORDS; n++) ({ id } = await post('/v1/objects/contacts', contact(n)))
  for (const { name, tool, request } of cases(id)) {
    const call = toolCall(...tool)
    await requireSuccess(stack, { ...call, headers: { ...headers, ...call.headers } })
    for (const clients of [1, 32]) {
      const of = (shot: Shot) => (): Promise<LoadResult> =>
        load(stack.apiUrl, clients, SECONDS, () => ({ ...shot, headers: { ...headers, ...shot.headers } }))
      await of(call)()
      const pairs = await inTurns(ROUNDS, of(call), of(request))
      printPairs(`${name}, ${clients} client${clients > 1 ? 's' : ''}`, pairs)
    }
  }
  print('the floor is the request of /v1 that the tool makes')
}

const cases = (id: string): Case[] => [
  {
    name: 'get_record',
    tool: ['get_record', { kind: 'contacts', id }],
    request: { path: `/v1/objects/contacts/${id}` },
  },
  {
    name: 'search_records, 10',
    tool: ['search_records', { kind: 'contacts', q: 'ada', limit: 10 }],
    request: { path: '/v1/objects/contacts?q=ada&limit=10' },
  },
  {
    name: 'create_record',
    tool: ['create_record', { kind: 'notes', fields: { body: 'Called' } }],
    request: { path: '/v1/objects/notes', method: 'POST', body: JSON.stringify({ body: 'Called' }) },
  },
]

function toolCall(name: string, given: object): Shot {
  const { headers, body } = rawMcp('tools/call', { name, arguments: given })
  return { path: '/mcp', method: 'POST', headers, body: JSON.stringify(body) }
}

/** A refused tool call is a response with status 200. */
async function requireSuccess({ apiUrl }: TestStack, { path, headers, body }: Shot): Promise<void> {
  const answer = await fetch(apiUrl + path, { method: 'POST', headers: headers!, body: body! })
  const text = await answer.text()
  if (!answer.ok || text.includes('"isError":true')) throw new Error(`${body}: ${answer.status} ${text}`)
}
