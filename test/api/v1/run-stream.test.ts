import assert from 'node:assert/strict'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { set } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { withApiAndWorker } from '../../support/with-api.ts'
import { queueRun } from '../../support/worker.ts'

const definition = {
  nodes: [set('first'), { id: 'wait', type: 'delay', config: { for: '1s' } }, set('last')],
  edges: [
    { from: 'first', handle: 'success', to: 'wait' },
    { from: 'wait', handle: 'success', to: 'last' },
  ],
  outputs: { value: '{{ nodes.last.output.value }}' },
}

interface Event {
  event: string
  id: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  data: any
}

describe('the stream of a run', () => {
  const suite = withApiAndWorker()

  const open = (id: string, headers: Record<string, string> = {}, key = suite.api.key) => {
    const abort = new AbortController()
    const response = fetch(`${suite.api.url}/v1/runs/${id}/stream`, {
      headers: { Authorization: `Bearer ${key}`, ...headers },
      signal: abort.signal,
    })
    return { abort, response }
  }

  /** The events until the stream ends, or until `enough`. */
  async function eventsOf(
    { response, abort }: ReturnType<typeof open>,
    enough: (events: Event[]) => boolean = () => false,
  ): Promise<Event[]> {
    const answer = await response
    assert.equal(answer.status, 200, await (answer.ok ? '' : answer.text()))
    assert.match(answer.headers.get('content-type')!, /^text\/event-stream/)
    const events: Event[] = []
    let text = ''
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk
      const parts = text.split('\n\n')
      text = parts.pop()!
      for (const part of parts) {
        const fields = Object.fromEntries(part.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)))
        if (fields.event) events.push({ event: fields.event, id: fields.id, data: JSON.parse(fields.data) })
      }
      if (enough(events)) {
        abort.abort()
        return events
      }
    }
    return events
  }
  const shown = (events: Event[]) =>
    events.map(({ event, data }) =>
      event === 'node' ? `${data.node_id} ${data.status}` : `${event} ${data.status}`,
    )
  const queue = () => queueRun(suite.db, suite.api.organizationId, definition)

  it('shows each node as it starts, waits and ends, then the end with the outputs', async () => {
    const id = await queue()
    const events = await eventsOf(open(id))
    const nodes = shown(events).filter((line) => !line.startsWith('run '))
    assert.deepEqual(nodes, [
      'first completed',
      'wait waiting',
      'wait completed',
      'last completed',
      'end completed',
    ])
    assert.deepEqual(events.at(-1)!.data.outputs, { value: 'last' })
    assert.ok(events.every(({ data }) => !('output' in data) && !('input' in data)))
  })

  it('shows the nodes of each item of a loop by their path, each change once', async () => {
    const each = { id: 'each', type: 'for_each', config: { items: ['a', 'b', 'c'], concurrency: 2 } }
    const [wait, body, last] = [
      { ...definition.nodes[1]!, config: { for: '300ms' } },
      set('body'),
      set('last'),
    ]
    const id = await queueRun(suite.db, suite.api.organizationId, {
      nodes: [each, wait, body, last],
      edges: [
        { from: 'each', handle: 'item', to: 'wait' },
        { from: 'wait', handle: 'success', to: 'body' },
        { from: 'each', handle: 'done', to: 'last' },
      ],
    })
    const events = await eventsOf(open(id), (all) => shown(all).includes('body completed'))
    const ofId = events.findLast((event) => event.id !== undefined)!
    const seen = events.slice(0, events.indexOf(ofId) + 1)
    const rest = await eventsOf(open(id, { 'Last-Event-ID': ofId.id! }))
    const nodes = [...seen, ...rest].filter(({ event }) => event === 'node').map(({ data }) => data)
    const lines = nodes.map(({ path, node_id, status }) => `${path}/${node_id} ${status}`)
    assert.deepEqual([...new Set(lines)].sort(), [...lines].sort(), 'no change twice')
    assert.deepEqual(
      lines.filter((line) => !line.includes(' waiting')).sort(),
      [
        '/each completed',
        '/last completed',
        ...[0, 1, 2].flatMap((n) => [`each:${n}/body completed`, `each:${n}/wait completed`]),
      ].sort(),
    )
    assert.equal(lines[0], '/each waiting')
    assert.equal(lines.at(-1), '/last completed')
    assert.equal(rest.at(-1)!.event, 'end')
  })

  it('goes on after Last-Event-ID', async () => {
    const id = await queue()
    const before = await eventsOf(open(id), (events) => shown(events).includes('wait waiting'))
    const last = before.findLast((event) => event.id !== undefined)!.id!
    const after = await eventsOf(open(id, { 'Last-Event-ID': last }))
    assert.deepEqual(
      shown(after).filter((line) => !line.startsWith('run ')),
      ['wait completed', 'last completed', 'end completed'],
    )
    const again = await eventsOf(open(id))
    assert.deepEqual(shown(again), [
      'run completed',
      'first completed',
      'wait completed',
      'last completed',
      'end completed',
    ])
  })

  it('is refused for unknown runs, other organizations and unknown ids of events', async () => {
    const id = await queue()
    const other = await createKey(suite.db, await createOrganization(suite.db))
    const weak = await createKey(suite.db, suite.api.organizationId, { scopes: ['workflows:read'] })
    const statuses = await Promise.all(
      [
        open('00000000-0000-4000-8000-000000000000'),
        open(id, {}, other.key),
        open(id, {}, weak.key),
        open(id, { 'Last-Event-ID': 'rubbish' }),
      ].map(async ({ response }) => (await response).status),
    )
    assert.deepEqual(statuses, [404, 404, 403, 400])
  })

  it('is limited for each key, and a closed one makes room', async () => {
    const id = await queueRun(suite.db, suite.api.organizationId, {
      nodes: [{ id: 'wait', type: 'delay', config: { for: '1h' } }],
    })
    const streams = Array.from({ length: 10 }, () => open(id))
    for (const { response } of streams) assert.equal((await response).status, 200)
    const refused = await open(id).response
    assert.equal(refused.status, 429)
    assert.ok(refused.headers.get('retry-after'))
    streams[0]!.abort.abort()
    await until(async () => {
      const { response, abort } = open(id)
      const { status } = await response
      abort.abort()
      return status === 200
    })
    for (const { abort } of streams) abort.abort()
  })

  it('ends when the API stops', async () => {
    const id = await queueRun(suite.db, suite.api.organizationId, {
      nodes: [{ id: 'wait', type: 'delay', config: { for: '1h' } }],
    })
    const opened = open(id)
    await opened.response
    suite.api.stop()
    const events = await eventsOf(opened)
    assert.ok(!shown(events).some((line) => line.startsWith('end')))
  })
})
