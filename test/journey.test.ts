import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect } from '../db/postgres/connect.ts'
import { liftLimits } from './bench/setup.ts'
import { prepareRows } from './fuzz/rows.ts'
import { startOutside as startLoadOutside } from './load/outside.ts'
import { type Journey, type Outside, prepareJourney, startOutside } from './support/journey.ts'
import { startStack, type TestStack } from './support/stack.ts'
import { until } from './support/until.ts'

/** A form provider's real payload, with the lead's address. */
const formPayload = (email: string): string =>
  readFileSync(new URL('./fixtures/webhooks/typeform.json', import.meta.url), 'utf8').replaceAll(
    'ada@example.com',
    email,
  )

type Contact = { id: string; first_name: string; lead_status: string | null; company_id: string | null }
type Run = { run_id: string; status: string; nodes: { node_id: string; status: string; handle: string }[] }

describe('a webhook becomes a record, a durable run and a signed delivery', () => {
  let stack: TestStack
  let outside: Outside
  let journey: Journey

  before(async () => {
    outside = await startOutside()
    stack = await startStack({ env: { EGRESS_ALLOW: '127.0.0.0/8', ALLOW_INSECURE_WEBHOOKS: 'true' } })
    journey = await prepareJourney(stack, outside)
  })
  after(async () => {
    await stack?.stop()
    await outside?.close()
  })

  const post = (email: string) =>
    fetch(journey.incoming.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-webhook-secret': journey.incoming.secret },
      body: formPayload(email),
    })

  /** Waits until everything that the lead should cause has happened, and checks that it happened once. */
  async function arrives(email: string): Promise<void> {
    const contact = await until(async () => {
      const page = await journey.v1<{ data: Contact[] }>('GET', `/objects/contacts?email=${email}`)
      return page.data.find(({ lead_status }) => lead_status === 'open')
    }, 'the contact')
    const { data } = await journey.v1<{ data: Contact[] }>('GET', `/objects/contacts?email=${email}`)
    assert.equal(data.length, 1, 'one contact')
    assert.equal(contact.first_name, 'Ada')
    assert.ok(contact.company_id, 'linked with its company')

    const ended = await until(async () => {
      const runs = await journey.v1<{ data: Run[] }>('GET', `/runs?record_id=${contact.id}`)
      assert.equal(runs.data.length, 1, 'one run')
      return runs.data.find(({ status }) => status !== 'running' && status !== 'queued')
    }, 'the end of the run')
    assert.equal(ended.status, 'completed')
    const run = await journey.v1<Run & { outputs: unknown }>('GET', `/runs/${ended.run_id}`)
    assert.deepEqual(
      run.nodes.map(({ node_id, status, handle }) => `${node_id} ${status} ${handle}`),
      [
        'reachable completed true',
        'pause completed success',
        'tell_sales completed success',
        'mark completed success',
      ],
    )
    assert.deepEqual(run.outputs, { accepted: true })
    assert.equal(outside.calls.filter((call) => call.email === email).length, 1, 'sales was told once')

    const mine = () =>
      outside.hooks.filter(({ data: about }) => about.id === contact.id || about.id === run.run_id)
    await until(() => mine().length >= 3, 'the deliveries')
    // A delivery sent just before a kill may be repeated: a receiver recognizes it by its webhook-id.
    const distinct = new Map(mine().map((hook) => [hook.id, hook.event]))
    assert.deepEqual([...distinct.values()].sort(), [
      'contact.created',
      'contact.updated',
      'workflow.completed',
    ])
    assert.deepEqual(outside.forged, [])
  }

  it('passes through all steps', async () => {
    const answer = await post('ada@example.com')
    assert.equal(answer.status, 200)
    const body = (await answer.json()) as Record<string, unknown>
    assert.deepEqual(
      { ...body, message: typeof body.message, record_id: typeof body.record_id },
      { success: true, message: 'string', record_id: 'string', entity: 'contact', action: 'created' },
    )
    await arrives('ada@example.com')
  })

  it('loses and duplicates nothing if the worker is killed during the run', async () => {
    assert.equal((await post('worker@example.com')).status, 200)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    stack.kill('worker')
    await arrives('worker@example.com')
  })

  it('loses and duplicates nothing if the api is killed right after its 200', async () => {
    assert.equal((await post('api@example.com')).status, 200)
    stack.kill('api')
    await arrives('api@example.com')
  })

  it('loses and duplicates nothing if Temporal is killed during the run', async () => {
    assert.equal((await post('temporal@example.com')).status, 200)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    stack.kill('temporal')
    await arrives('temporal@example.com')
  })

  it('loses and duplicates nothing if all processes are killed at once and restarted', async () => {
    assert.equal((await post('all@example.com')).status, 200)
    for (const name of ['supervisor', 'worker', 'api', 'temporal', 'postgres'] as const) stack.kill(name)
    await stack.exited
    stack = await startStack({
      previous: stack,
      env: { EGRESS_ALLOW: '127.0.0.0/8', ALLOW_INSECURE_WEBHOOKS: 'true' },
    })
    await arrives('all@example.com')
  })

  it('gets a row of every kind that a path names, for the attacks and the fuzzer', async () => {
    const db = connect({ url: stack.databaseUrl })
    const others = await startLoadOutside()
    try {
      await liftLimits(db)
      const { ids } = await prepareRows(stack, db, others)
      assert.ok(Object.values(ids).every((found) => found.length > 0))
    } finally {
      await others.close()
      await db.close()
    }
  })
})
