import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'
import { startWorker, type TestWorker } from '../../support/worker.ts'

const SPEC = `name: Invite
inputs: {names: array}
nodes:
  team: {type: set_fields, config: {fields: {name: Sales}}}
  each:
    type: for_each
    config: {items: "{{ inputs.names }}", concurrency: 2, on_item_error: continue}
    next: {item: save, done: after}
  save:
    type: crm_manager
    config: {operation: create, entity: contacts, fields: {first_name: "{{ item }}", job_title: "{{ nodes.team.output.name }}"}}
  pause: {type: delay, config: {for: 2h}}
  call:
    type: api_request
    config: {method: POST, url: "https://x.test/{{ index }}", body: {id: "{{ nodes.save.output.id }}"}}
    next: {success: child}
  child:
    type: run_workflow
    config: {workflow: Greet, inputs: {name: "{{ item }}"}}
    next: end
  after: {type: crm_manager, config: {operation: create, entity: companies, fields: {name: After}}}
`
const GREET = `name: Greet
inputs: {name: string}
nodes: {say: {type: set_fields, config: {fields: {text: "Hello {{ inputs.name }}"}}}}
outputs: {text: "{{ nodes.say.output.text }}"}
`

// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = any

describe('the test of a loop of a workflow', () => {
  const suite = withApi()
  let worker: TestWorker
  let path: string
  const calls: string[] = []

  const call = async (method: string, url: string, body: unknown, options: object = {}): Promise<Json> => {
    const answer = await suite.api.request(method, url, { body, ...options })
    ok(answer.status < 300, JSON.stringify(answer.body))
    return answer.body
  }
  const test = (names: unknown[], more: object = {}) =>
    call('POST', `${path}/nodes/each/test`, {
      inputs: { inputs: { names }, nodes: { team: { output: { name: 'Sales' } } } },
      confirm: true,
      ...more,
    })

  before(async () => {
    worker = await startWorker(suite.db, {
      secretsKey: suite.api.secretsKey,
      http: async (request) => {
        calls.push(request.url)
        if (request.url.endsWith('/1')) throw new Error('refused')
        return { status: 200, headers: {}, body: Buffer.from('{}') } as never
      },
    })
    await call('POST', '/v1/workflows', { spec: GREET })
    path = `/v1/workflows/${(await call('POST', '/v1/workflows', { spec: SPEC })).workflow_id}`
  })
  after(() => worker?.stop())

  it('runs the body for each item, with its writes, calls and runs, and not what follows the loop', async () => {
    const done = await test(['Ada', 'Bob'])
    deepEqual([done.status, done.handle, done.error], ['completed', 'done', undefined], JSON.stringify(done))
    const { count, succeeded, failed, items } = done.output
    deepEqual([count, succeeded, failed], [2, 1, 1])
    deepEqual([items[0].status, items[0].output.outputs], ['completed', { text: 'Hello Ada' }])
    deepEqual([items[1].status, items[1].error.node_id], ['failed', 'call'])
    deepEqual(calls.splice(0).sort(), ['https://x.test/0', 'https://x.test/1'])
    const { data } = await call('GET', '/v1/objects/contacts?sort=first_name&order=asc', undefined)
    deepEqual(
      data.map((one: Json) => [one.first_name, one.job_title]),
      [
        ['Ada', 'Sales'],
        ['Bob', 'Sales'],
      ],
    )
    equal((await call('GET', '/v1/objects/companies', undefined)).total, 0)
    const said = done.log.map(({ message }: Json) => message).join('\n')
    match(said, /^each:0\/save: creating a record in contacts/m)
    match(said, /^each:0\/pause: would wait until /m)
    match(said, /^each:1\/call: failed: /m)
    const events = await suite.db.system('events').where({ name: 'contact.created' }).count().first()
    equal(Number(events!.count), 2, 'the writes raise their events')
  })

  it('runs the first 20 items of a long list', async () => {
    const long = SPEC.replace('Invite', 'Long')
      .replace(
        / {2}save:[\s\S]*(?= {2}after:)/,
        '  say: {type: set_fields, config: {fields: {n: "{{ item }}"}}, next: end}\n',
      )
      .replace('item: save', 'item: say')
    const { workflow_id } = await call('POST', '/v1/workflows', { spec: long })
    const names = Array.from({ length: 30 }, (_, i) => i)
    const done = await call('POST', `/v1/workflows/${workflow_id}/nodes/each/test`, {
      inputs: { names },
      confirm: true,
    })
    deepEqual([done.output.count, done.output.items.at(-1).output], [20, { n: 19 }])
    equal(done.log[0].message, 'each: runs the first 20 of 30 items')
  })

  it('fails an item that waits for an answer', async () => {
    const spec = `name: Asks
nodes:
  each: {type: for_each, config: {items: [1]}}
  ask: {type: approval, config: {title: "May I?"}}
`
    const { workflow_id } = await call('POST', '/v1/workflows', { spec })
    const done = await call('POST', `/v1/workflows/${workflow_id}/nodes/each/test`, { confirm: true })
    deepEqual([done.status, done.error.details.error.code], ['failed', 'test_does_not_wait'])
  })

  it('runs no cleanup nodes of the workflow, whether its items complete or fail', async () => {
    for (const [text, status] of [
      ['[]', 'completed'],
      ['[', 'failed'],
    ]) {
      const spec = `name: Cleaned
settings: {finally: {type: set_fields, config: {fields: {x: 1}}}}
nodes:
  each: {type: for_each, config: {items: "{{ 'a' | split: ',' }}"}, next: {item: say}}
  say: {type: parse_json, config: {text: "${text}"}}
`
      const { workflow_id } = await call('POST', '/v1/workflows', { spec })
      const done = await call('POST', `/v1/workflows/${workflow_id}/nodes/each/test`, { confirm: true })
      equal(done.status, status, JSON.stringify(done))
    }
  })

  it('needs the scopes of the nodes in the body', async () => {
    const keyWith = async (scopes: string[]) =>
      (await createKey(suite.db, suite.api.organizationId, { scopes: scopes as never })).key
    const refused = await suite.api.request('POST', `${path}/nodes/each/test`, {
      body: { inputs: { names: [] } },
      key: await keyWith(['workflows:run']),
    })
    deepEqual([refused.status, refused.body.error.message], [403, 'the key lacks the scope contacts:write'])
    const { preview } = await call(
      'POST',
      `${path}/nodes/each/test`,
      { inputs: { names: ['Ada'] } },
      { key: await keyWith(['workflows:run', 'contacts:write']) },
    )
    deepEqual(preview.warnings, ['Has effects outside the service.'])
    deepEqual(preview.calls, ['run its body for 1 items, 1 at a time'])
  })
})
