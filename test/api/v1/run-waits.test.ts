import assert from 'node:assert/strict'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { withApiAndWorker } from '../../support/with-api.ts'
import { queueRun, untilRun } from '../../support/worker.ts'

describe('POST /v1/runs/{run_id}/signal', () => {
  const suite = withApiAndWorker()

  const node = (id: string, type: string, config: Record<string, unknown>) => ({ id, type, config })
  async function waiting(...nodes: ReturnType<typeof node>[]) {
    const start = { id: 'start', type: 'set_fields', config: { fields: {} } }
    const id = await queueRun(suite.db, suite.api.organizationId, {
      nodes: [start, ...nodes],
      edges: nodes.map(({ id }) => ({ from: 'start', handle: 'success', to: id })),
    })
    for (;;) {
      const waits = await suite.db.system('run_waits').where({ run_id: id })
      if (waits.length === nodes.length) return id
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const get = async (id: string) => (await suite.api.request('GET', `/v1/runs/${id}`)).body
  const send = (
    id: string,
    body: unknown,
    options: { key?: string; headers?: Record<string, string> } = {},
  ) => suite.api.request('POST', `/v1/runs/${id}/signal`, { body, ...options })

  it('says how to decide an approval to a client that sends a signal for it', async () => {
    const id = await waiting(node('ask', 'approval', { title: 'May I?' }))
    const { status, body } = await send(id, { name: 'ask', payload: { decision: 'approved' } })
    assert.deepEqual(
      [status, body.error.message, body.error.hint],
      [
        409,
        'no node of the workflow waits for a signal ask',
        'an approval is decided by {"approval_id": "…", "decision": "approved"}: the `waits` of the run have the id',
      ],
    )
    await suite.api.request('POST', `/v1/runs/${id}/cancel`)
  })

  it('keeps a signal whose node does not wait yet, or has a name that is not known before', async () => {
    const id = await waiting(
      node('hold', 'wait_for_signal', { name: 'paid' }),
      node('other', 'wait_for_signal', { name: 'x{{ run.id }}' }),
    )
    const kept = await send(id, { name: 'x1' })
    assert.deepEqual([kept.status, kept.body.path, kept.body.node_id], [200, null, null])
    await suite.api.request('POST', `/v1/runs/${id}/cancel`)
  })

  it('sends a signal to the node that waits, and refuses one to a run that has ended', async () => {
    const id = await waiting(node('hold', 'wait_for_signal', { name: 'paid' }))
    const other = await send(id, { name: 'pad' })
    assert.deepEqual(
      [other.status, other.body.error.message, other.body.error.hint],
      [409, 'no node of the workflow waits for a signal pad', 'did you mean paid?'],
    )
    const taken = await send(id, { name: 'paid', payload: { amount: 1 } })
    assert.deepEqual([taken.status, taken.body.path, taken.body.node_id], [200, '', 'hold'])
    await untilRun(suite.db, id)
    const { nodes, waits } = await get(id)
    assert.deepEqual([nodes[1].output.payload, nodes[1].handle, waits], [{ amount: 1 }, 'received', []])
    const late = await send(id, { name: 'paid' })
    assert.deepEqual([late.status, late.body.error.message], [409, 'the run has ended: it is completed'])
  })

  it('answers a signal with the item of the loop that took it', async () => {
    const definition = {
      nodes: [
        node('each', 'for_each', { items: [1, 2], concurrency: 2 }),
        node('hold', 'wait_for_signal', { name: 'go' }),
      ],
      edges: [{ from: 'each', handle: 'item', to: 'hold' }],
    }
    const id = await queueRun(suite.db, suite.api.organizationId, definition)
    while ((await suite.db.system('run_waits').where({ run_id: id })).length < 2)
      await new Promise((resolve) => setTimeout(resolve, 20))
    const paths: string[] = []
    for (const _ of [1, 2]) {
      const { body } = await send(id, { name: 'go' })
      paths.push(`${body.path}/${body.node_id}`)
    }
    assert.deepEqual(paths.sort(), ['each:0/hold', 'each:1/hold'])
    await untilRun(suite.db, id)
  })

  it('sends once with an Idempotency-Key', async () => {
    const id = await waiting(node('hold', 'wait_for_signal', { name: 'end' }))
    const headers = { 'Idempotency-Key': 'once' }
    for (const _ of [1, 2]) assert.equal((await send(id, { name: 'end' }, { headers })).status, 200)
    assert.equal((await suite.db.system('run_signals').where({ run_id: id })).length, 1)
    await untilRun(suite.db, id)
  })

  it('lists what a run waits for, with the link of an approval, only while it waits', async () => {
    const record = '019a0000-0000-7000-8000-000000000001'
    const id = await waiting(
      node('ask', 'approval', { title: 'May I?', timeout: '1h' }),
      node('event', 'wait_for_event', { event: 'deal.won', record_id: record, when: '{{ event.name }}' }),
    )
    const { waits, nodes } = await get(id)
    const [ask, event] = ['ask', 'event'].map((id) =>
      waits.find((wait: { node_id: string }) => wait.node_id === id),
    )
    assert.match(ask.approval.link, /\/approvals\/[\w-]{130}$/)
    assert.ok(ask.expires_at)
    assert.deepEqual(
      [event.type, event.events, event.record_id, event.when],
      ['event', ['deal.won'], record, '{{ event.name }}'],
    )
    assert.ok(nodes.every((one: { output: unknown }) => !JSON.stringify(one).includes('/approvals/')))
    const { id: approval_id } = ask.approval
    const decided = await send(id, { approval_id, decision: 'rejected', comment: 'No.' })
    assert.deepEqual(
      [decided.status, decided.body.status, decided.body.answered_by.type],
      [200, 'rejected', 'key'],
    )
    assert.equal((await send(id, { approval_id, decision: 'approved' })).status, 409)
    assert.ok((await get(id)).waits.every(({ type }: { type: string }) => type !== 'decision'))
    await suite.api.request('POST', `/v1/runs/${id}/cancel`)
    await untilRun(suite.db, id)
    const other = await waiting(node('ask', 'approval', { title: 'May I?' }))
    const [{ approval }] = (await get(other)).waits
    assert.equal(
      (await send(id, { approval_id: approval.id, decision: 'approved' })).status,
      404,
      'another run',
    )
    await suite.api.request('POST', `/v1/runs/${other}/cancel`)
    await untilRun(suite.db, other)
    assert.equal((await send(other, { approval_id: approval.id, decision: 'approved' })).status, 410)
  })

  it('refuses what is neither a signal nor a decision, all at once', async () => {
    const id = await waiting(node('hold', 'wait_for_signal', { name: 'end' }))
    const fields = async (body: unknown) => {
      const { status, body: answer } = await send(id, body)
      return [status, answer.detail?.map(({ loc }: { loc: string[] }) => loc.at(-1)).sort()]
    }
    assert.deepEqual(await fields({}), [422, ['name']])
    assert.deepEqual(await fields({ decision: 'approved' }), [422, ['approval_id', 'name']])
    assert.deepEqual(await fields({ name: 'a', comment: 'c' }), [422, ['comment']])
    const approval_id = '019a0000-0000-7000-8000-000000000001'
    assert.deepEqual(await fields({ approval_id, name: 'a', payload: 1 }), [
      422,
      ['decision', 'name', 'payload'],
    ])
    assert.deepEqual(await fields({ name: 'a', payload: 'x'.repeat(65_536) }), [413, undefined])
    assert.deepEqual(await fields({ approval_id, decision: 'approved' }), [404, undefined])
    await send(id, { name: 'end' })
    await untilRun(suite.db, id)
  })

  it('needs workflows:run, and a run of the organization', async () => {
    const id = await waiting(node('hold', 'wait_for_signal', { name: 'end' }))
    const reader = await createKey(suite.db, suite.api.organizationId, { scopes: ['workflows:read'] })
    assert.equal((await send(id, { name: 'end' }, { key: reader.key })).status, 403)
    const other = await createKey(suite.db, await createOrganization(suite.db))
    assert.equal((await send(id, { name: 'end' }, { key: other.key })).status, 404)
    assert.equal((await send(id, { name: 'end' })).status, 200)
    await untilRun(suite.db, id)
  })

  it('says in a node test what would be waited for, and asks nobody', async () => {
    const test = async (node_type: string, config: Record<string, unknown>, inputs = {}) => {
      const body = { node_type, config, inputs, confirm: true }
      const { body: answer } = await suite.api.request('POST', '/v1/workflows/nodes/test', { body })
      assert.equal(answer.status, 'completed', JSON.stringify(answer))
      return answer.log.map(({ message }: { message: string }) => message).join('\n')
    }
    const when = '{{ event.data.n > inputs.n }}'
    assert.match(
      await test(
        'wait_for_event',
        { event: 'invoice.{{ inputs.what }}', when, timeout: '1h' },
        { what: 'paid', n: 1 },
      ),
      /would wait for the event invoice.paid for which \{\{ event.data.n > inputs.n \}\} holds, until 2.*Z at most, and leave by received/,
    )
    assert.match(await test('wait_for_signal', { name: 'go' }), /would wait for the signal go, without limit/)
    assert.match(
      await test('approval', { title: 'a', assignees: ['ann@example.com'] }),
      /would wait for a decision of ann@example.com, without limit, and leave by approved/,
    )
    const { organizationId } = suite.api
    const events = await suite.db
      .system('events')
      .where({ organization_id: organizationId, name: 'approval.requested' })
      .whereRaw("data ->> 'title' = 'a'")
    assert.deepEqual(events, [])
  })

  it('lists the waits of the items of a loop by their paths', async () => {
    const id = await queueRun(suite.db, suite.api.organizationId, {
      nodes: [
        node('each', 'for_each', { items: ['a', 'b'], concurrency: 2 }),
        node('ask', 'approval', { title: '{{ item }}' }),
      ],
      edges: [{ from: 'each', handle: 'item', to: 'ask' }],
    })
    for (let waits = []; waits.length < 2; ) ({ waits } = await get(id))
    const { waits } = await get(id)
    assert.deepEqual(
      waits.map(({ path, approval }: { path: string; approval: { title: string } }) => [
        path,
        approval.title,
      ]),
      [
        ['each:0', 'a'],
        ['each:1', 'b'],
      ],
    )
    for (const { approval } of waits)
      assert.equal((await send(id, { approval_id: approval.id, decision: 'approved' })).status, 200)
    await untilRun(suite.db, id)
  })
})
