import { connect } from '../../db/connect.ts'
import type { TestStack } from '../support/stack.ts'
import { startChild } from './child.ts'
import { load } from './load.ts'
import { inTurns, printPairs } from './report.ts'
import { liftLimits } from './setup.ts'

const CLIENTS = 32
const SECONDS = 4
const ROUNDS = 3

/** A read and a create of one contact, against a bare Koa handler that sends the same SQL. */
export async function benchRecords(stack: TestStack): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  const organizationId = await liftLimits(db)
  await db.close()
  const headers = { authorization: `Bearer ${stack.key}`, 'content-type': 'application/json' }
  const post = { method: 'POST', path: '/v1/objects/contacts', headers } as const
  let made = 0
  const body = () => JSON.stringify({ first_name: 'Bench', email: `bench${made++}@example.com` })
  const answer = await fetch(stack.apiUrl + post.path, { method: 'POST', headers, body: body() })
  const { id } = (await answer.json()) as { id: string }
  const floor = await startChild('./floor-http.ts', [stack.databaseUrl, organizationId, id])
  const floorUrl = `http://127.0.0.1:${floor.ready.port}`
  const path = `/v1/objects/contacts/${id}`

  const both = (shot: () => Parameters<typeof load>[3] extends () => infer S ? S : never) =>
    inTurns(
      ROUNDS,
      () => load(stack.apiUrl, CLIENTS, SECONDS, shot),
      () => load(floorUrl, CLIENTS, SECONDS, shot),
    )
  // Warm up both: the first requests compile and connect.
  await load(stack.apiUrl, CLIENTS, 1, () => ({ path, headers }))
  await load(floorUrl, CLIENTS, 1, () => ({ path, headers }))
  printPairs('GET /v1/objects/contacts/{id}', await both(() => ({ path, headers })))
  printPairs('POST /v1/objects/contacts', await both(() => ({ ...post, body: body() })))
  await floor.close()
}
