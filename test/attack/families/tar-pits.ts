import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CALLS } from '../../../activities/slots/call-slots.ts'
import { OPEN_CALLS } from '../../../workflows/shared/limits.ts'
import type { Family } from '../family.ts'
import { Caller, eventually } from '../workflows.ts'

const RUNS = 5
/** What one organization may hold of the slots of a worker, as `CallSlots` documents. */
const MOST = (CALLS.all - CALLS.firsts) / 2

const spec = (url: string) => `name: Tar pit
inputs:
  items: {type: array, required: true}
nodes:
  each:
    type: for_each
    config: {items: "{{ inputs.items }}", concurrency: 50, on_item_error: continue}
    next: {item: call}
  call:
    type: api_request
    retry: {max_attempts: 1}
    timeout: 4m
    config: {method: GET, url: "${url}/{{ item }}"}
`

const ONE = (url: string) => `name: One call
nodes:
  call:
    type: api_request
    retry: {max_attempts: 1}
    config: {method: GET, url: "${url}/"}
`

/** A server that answers every call, or none. A service is known by its host, so each has an address of its own. */
async function startServer(host: string, answering: boolean) {
  const held = new Set<ServerResponse>()
  let most = 0
  const server = createServer((_, response) => {
    if (answering) return void response.end('{}')
    held.add(response)
    most = Math.max(most, held.size)
    response.on('close', () => held.delete(response))
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    held: () => held.size,
    most: () => most,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Calls that never end, of more than one organization may hold; counted in slots. */
export const tarPits: Family = {
  name: 'tar-pits',
  title: 'servers that never answer',
  async run(ground, tally) {
    const [pit, right] = [await startServer('127.0.0.1', false), await startServer('127.0.0.2', true)]
    const attacker = new Caller(ground, ground.attacker)
    const victim = new Caller(ground, ground.victim)
    const runs: string[] = []
    try {
      const workflowId = await attacker.workflow(spec(pit.url))
      for (let n = 0; n < RUNS; n++) {
        const items = Array.from({ length: OPEN_CALLS }, (_, i) => n * OPEN_CALLS + i)
        runs.push(await attacker.run(workflowId, { items }))
      }
      const full = await eventually(async () => {
        const before = pit.held()
        await new Promise((resolve) => setTimeout(resolve, 2_000))
        return before > OPEN_CALLS && before === pit.held() ? before : undefined
      }, 60)
      tally.attempt(full !== undefined, `only ${pit.held()} calls hang: the attack did not begin`)
      for (let call = 1; call <= RUNS * OPEN_CALLS; call++)
        tally.attempt(call > pit.most() || call <= MOST, `call ${call} of one organization holds a slot`)
      const one = await victim.workflow(ONE(right.url))
      for (let n = 0; n < 5; n++) {
        const status = await victim.endOf(await victim.run(one))
        tally.attempt(status === 'completed', `a call of another organization: ${status}`)
      }
      const own = await attacker.endOf(await attacker.run(await attacker.workflow(ONE(right.url))))
      tally.attempt(own === 'completed', `a call of the attacker to another service: ${own}`)
      tally.attempt(pit.held() >= (full ?? 0), 'the calls that hang have ended: nothing was shown')
      const { text } = await attacker.call('GET', `/runs/${runs.at(-1)}`)
      tally.attempt(text.includes('"waiting_for":"slot"'), 'a run does not say that it waits for a slot')
    } finally {
      for (const id of runs) await attacker.call('POST', `/runs/${id}/cancel`, {})
      pit.close()
      right.close()
    }
  },
}
