import { connect } from '../../db/postgres/connect.ts'
import { FLAGS } from '../../worker/dev/flags.ts'
import type { TestStack } from '../support/stack.ts'
import { startChild } from './child.ts'
import { type LoadResult, load, type Shot } from './load.ts'
import { inTurns, print, printPairs } from './report.ts'
import { liftLimits } from './setup.ts'
import { CpuMeter, stackCpu } from './stack-cpu.ts'

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

/** Sequential light nodes, each with a template. */
const LIGHT_NODES = 40

/** The specification of a workflow of `count` light nodes in a row. */
const chain = (name: string, count: number) => {
  const nodes = Array.from({ length: count }, (_, i) => [
    `n${i}`,
    {
      type: 'set_fields',
      config: { fields: { text: i === 0 ? 'start' : `{{ nodes.n${i - 1}.output.text }}` } },
      ...(i < count - 1 ? { next: `n${i + 1}` } : {}),
    },
  ])
  return JSON.stringify({ name, nodes: Object.fromEntries(nodes) })
}

type Post = <T>(path: string, body: object) => Promise<T>

/** Runs a workflow by name and waits for its end. */
export interface Bench {
  organizationId: string
  url: string
  post: Post
  get<T>(path: string): Promise<T>
  /** The request that runs a workflow. */
  shot(name: string, inputs?: object): Shot
}

/** Prepares the demo organization for benches of runs. */
export async function prepareRuns(stack: TestStack): Promise<Bench> {
  const db = connect({ url: stack.databaseUrl })
  const organizationId = await liftLimits(db)
  await db.close()
  const headers = { authorization: `Bearer ${stack.key}`, 'content-type': 'application/json' }
  return {
    organizationId,
    url: stack.apiUrl,
    async get<T>(path: string): Promise<T> {
      const answer = await fetch(stack.apiUrl + path, { headers })
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
      return (await answer.json()) as T
    },
    async post<T>(path: string, body: object): Promise<T> {
      const answer = await fetch(stack.apiUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
      return (await answer.json()) as T
    },
    shot: (name, inputs = {}) => ({
      method: 'POST',
      path: '/v1/workflows/run-by-name',
      headers: { ...headers, prefer: 'wait=30' },
      body: JSON.stringify({ name, inputs, confirm: true }),
    }),
  }
}

/** Saves the workflow `Bench` of five light nodes. @returns its id, its contact, and the request that runs it. */
export async function fiveNodes({ post, shot }: Bench) {
  const contact = await post<{ id: string }>('/v1/objects/contacts', { first_name: 'Bench' })
  const workflow = await post<{ workflow_id: string }>('/v1/workflows', { spec: SPEC })
  return {
    contactId: contact.id,
    workflowId: workflow.workflow_id,
    shot: shot('Bench', { contact_id: contact.id }),
  }
}

/**
 * run-by-name with Prefer: wait, compared with a hand-written workflow whose local activity sends the same SQL:
 * executed by the process that starts it (see `floor-runs.ts` for the scope of that floor), and behind a bare HTTP
 * handler in a separate process (`floor-service.ts`). And a chain of light nodes compared with a single one.
 */
export async function benchRuns(stack: TestStack): Promise<void> {
  const bench = await prepareRuns(stack)
  const { contactId, workflowId, shot } = await fiveNodes(bench)
  const floor = await startChild(
    './floor-runs.ts',
    [stack.databaseUrl, stack.temporalAddress, bench.organizationId, workflowId, contactId],
    FLAGS.worker,
  )
  const service = await startChild('./floor-service.ts', [
    stack.temporalAddress,
    String(floor.ready.taskQueue),
  ])
  const served = (clients: number, seconds: number) =>
    load(`http://127.0.0.1:${service.ready.port}`, clients, seconds, () => ({ path: '/', method: 'POST' }))
  const cpu = () => stackCpu(stack, { floor: floor.pid, service: service.pid })
  // Warm-up, until the JIT has compiled both.
  await load(stack.apiUrl, 50, 10, () => shot)
  await floor.ask({ clients: 50, seconds: 5 })
  await served(50, 5)
  for (const clients of [1, 50]) {
    const name = `run-by-name, ${clients} client${clients > 1 ? 's' : ''}`
    const measured = { ours: new CpuMeter(cpu), floor: new CpuMeter(cpu), service: new CpuMeter(cpu) }
    const ours = () => measured.ours.of(() => load(stack.apiUrl, clients, SECONDS, () => shot))
    printPairs(
      name,
      await inTurns(ROUNDS, ours, () =>
        measured.floor.of(() => floor.ask<LoadResult>({ clients, seconds: SECONDS })),
      ),
    )
    printPairs(
      `${name} (floor: service)`,
      await inTurns(ROUNDS, ours, () => measured.service.of(() => served(clients, SECONDS))),
    )
    print(`CPU for a run: ${measured.ours}`)
    print(`CPU for one of the floor: ${measured.floor}`)
    print(`CPU for one of the service: ${measured.service}`)
  }
  await service.close()
  await floor.close()
  for (const count of [1, LIGHT_NODES])
    await bench.post('/v1/workflows', { spec: chain(`Light ${count}`, count) })
  const light = (count: number) => load(stack.apiUrl, 1, SECONDS, () => bench.shot(`Light ${count}`))
  printPairs(
    `${LIGHT_NODES} light nodes (floor: one)`,
    await inTurns(
      ROUNDS,
      () => light(LIGHT_NODES),
      () => light(1),
    ),
  )
}
