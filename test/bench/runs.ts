import { connect } from '../../db/postgres/connect.ts'
import type { TestStack } from '../support/stack.ts'
import { startChild } from './child.ts'
import { type LoadResult, load } from './load.ts'
import { inTurns, printPairs } from './report.ts'
import { liftLimits } from './setup.ts'

const ROUNDS = 3
const SECONDS = 5

/** Five light nodes: pure, read and write ones. */
const SPEC = `name: Bench
inputs:
  contact_id: {type: string, required: true}
nodes:
  find:
    type: crm_manager
    config: {operation: get, entity: contacts, id: "{{ inputs.contact_id }}"}
  known:
    type: condition
    config: {conditions: [{left: "{{ nodes.find.output.first_name }}", operator: eq, right: Bench}]}
    next: {"true": greet, "false": end}
  greet:
    type: set_fields
    config: {fields: {text: "Hello {{ nodes.find.output.first_name }}"}}
  which:
    type: switch
    config: {value: "{{ nodes.find.output.lead_status }}", cases: {fresh: new}}
    next: {fresh: end, default: tell}
  tell:
    type: emit_event
    config: {event: bench.done, data: {text: "{{ nodes.greet.output.text }}"}}
outputs: {text: "{{ nodes.greet.output.text }}"}
`

/** run-by-name with Prefer: wait, against a hand-written workflow whose local activity sends the same SQL. */
export async function benchRuns(stack: TestStack): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  const organizationId = await liftLimits(db)
  await db.close()
  const headers = { authorization: `Bearer ${stack.key}`, 'content-type': 'application/json' }
  const post = async <T>(path: string, body: object): Promise<T> => {
    const answer = await fetch(stack.apiUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
  const contact = await post<{ id: string }>('/v1/objects/contacts', { first_name: 'Bench' })
  const workflow = await post<{ workflow_id: string }>('/v1/workflows', { spec: SPEC })
  const body = JSON.stringify({ name: 'Bench', inputs: { contact_id: contact.id }, confirm: true })
  const shot = {
    method: 'POST',
    path: '/v1/workflows/run-by-name',
    headers: { ...headers, prefer: 'wait=30' },
    body,
  } as const
  const floor = await startChild('./floor-runs.ts', [
    stack.databaseUrl,
    stack.temporalAddress,
    organizationId,
    workflow.workflow_id,
    contact.id,
  ])
  // Until the JIT has compiled both.
  await load(stack.apiUrl, 50, 10, () => shot)
  await floor.ask({ clients: 50, seconds: 5 })
  for (const clients of [1, 50])
    printPairs(
      `run-by-name, ${clients} client${clients > 1 ? 's' : ''}`,
      await inTurns(
        ROUNDS,
        () => load(stack.apiUrl, clients, SECONDS, () => shot),
        () => floor.ask<LoadResult>({ clients, seconds: SECONDS }),
      ),
    )
  await floor.close()
}
