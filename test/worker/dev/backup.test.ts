import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from '../../../db/postgres/connect.ts'
import { ownerSession } from '../../bench/setup.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startReceiver } from '../../support/receiver.ts'
import { startStack, type TestStack } from '../../support/stack.ts'
import { until } from '../../support/until.ts'

const SPEC = `name: Waits
nodes:
  pause: {type: delay, config: {for: 8s}, next: answer}
  answer: {type: wait_for_signal, config: {name: go}}
`

/** The procedure of docs/operations.md under "Backup". */
describe('a copy of the data folder of a stopped npm start', () => {
  let stack: TestStack
  let receiver: Awaited<ReturnType<typeof startReceiver>>
  let runs: string[]
  const env = { EGRESS_ALLOW: '127.0.0.0/8', ALLOW_INSECURE_WEBHOOKS: 'true' }

  const request = async (method: string, path: string, body?: object) => {
    const answer = await fetch(stack.apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${stack.key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
    const read: any = await answer.json()
    assert.ok(answer.ok, JSON.stringify(read))
    return read
  }
  const statusIn = async (table: string) => {
    const db = connect({ url: stack.databaseUrl, poolSize: 2 })
    try {
      return await db.system(table).pluck('status')
    } finally {
      await db.close()
    }
  }

  before(async () => {
    receiver = await startReceiver()
    stack = await startStack({ env })
    const app = await ownerSession(stack)
    // Its secret and the key are sealed and hashed in the copy. Its first attempt fails.
    receiver.behave(500)
    await app('/webhooks/outgoing', {
      name: 'T',
      url: receiver.url,
      events: ['contact.created'],
      retry_schedule: [10],
    })
    await request('POST', '/v1/objects/contacts', { first_name: 'Ada' })
    const { workflow_id } = await request('POST', '/v1/workflows', { spec: SPEC })
    const start = () => request('POST', `/v1/workflows/${workflow_id}/run`, { confirm: true })
    runs = (await Promise.all([start(), start()])).map(({ run_id }) => run_id)
    await until(async () => receiver.received.length === 1)
    await until(async () => (await statusIn('run_nodes')).every((status) => status === 'waiting'))
    await stack.stop()

    const copy = join(temporaryFolder(), 'restored')
    execFileSync('cp', ['-a', stack.dataDir, copy])
    rmSync(stack.dataDir, { recursive: true })
    receiver.behave()
    stack = await startStack({ env, previous: { ...stack, dataDir: copy } })
  })
  after(async () => {
    await stack?.stop()
    receiver?.close()
  })

  it('starts with the same key and records', async () => {
    const { data } = await request('GET', '/v1/objects/contacts')
    assert.deepEqual(
      data.map((contact: { first_name: string }) => contact.first_name),
      ['Ada'],
    )
  })

  it('delivers what failed before', async () => {
    await until(async () => receiver.received.length === 1)
    await until(async () => (await statusIn('deliveries')).includes('succeeded'))
    assert.match(receiver.received[0]!.body, /contact\.created/)
  })

  it('continues the runs that slept and those that wait for an answer', async () => {
    await until(async () => {
      const waits = await Promise.all(runs.map((id) => request('GET', `/v1/runs/${id}`)))
      await new Promise((resolve) => setTimeout(resolve, 200))
      return waits.every(({ waits }) => waits?.length === 1)
    })
    for (const id of runs) await request('POST', `/v1/runs/${id}/signal`, { name: 'go', payload: {} })
    await until(async () => (await statusIn('runs')).every((status) => status === 'completed'))
  })
})
