import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHttp, type HttpClient } from '../../activities/http/client.ts'
import { putSecret } from '../../db/access/secrets.ts'
import { createSchema } from '../../db/model/records/schemas.ts'
import { createRecord } from '../../db/records/create.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { planted } from '../support/planted.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const KEY = planted('sk-local-4711')

interface Asked {
  at: number
  headers: NodeJS.Dict<string | string[]>
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came in
  body: any
}

type Reply = { status?: number; headers?: Record<string, string>; body: unknown }

const chat = (content: string, more: object = {}): Reply => ({
  body: {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'local-1',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop', ...more }],
    usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 },
  },
})

const schema = {
  type: 'object',
  properties: { urgency: { enum: ['low', 'high'] }, score: { type: 'integer', minimum: 0 } },
  required: ['urgency', 'score'],
  additionalProperties: false,
}

describe('a prompt to a language model', () => {
  let db: TestDatabase
  let organizationId: string
  let worker: TestWorker
  let http: HttpClient
  let server: Server
  let base_url: string
  let asked: Asked[] = []
  let replies: Reply[] = []

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    server = createServer(async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      asked.push({ at: Date.now(), headers: request.headers, body: JSON.parse(text) })
      const known = request.method === 'POST' && request.url === '/v1/chat/completions'
      const reply = known ? replies.shift()! : { status: 404, body: {} }
      response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers })
      response.end(JSON.stringify(reply.body))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    http = createHttp({ allow: ['127.0.0.1/32'] })
    const secretsKey = Buffer.alloc(32, 7)
    worker = await startWorker(db, { http: http.call, secretsKey })
    await db.tenant(organizationId, testActor, (tx) => putSecret(tx, secretsKey, 'llm', KEY))
  })
  after(async () => {
    await worker?.stop()
    await http?.close()
    server?.closeAllConnections()
    server?.close()
    await db?.drop()
  })

  const ask = async (config: Record<string, unknown>, ...given: Reply[]) => {
    asked = []
    replies = given
    const base = {
      base_url,
      api_key: '{{ secrets.llm }}',
      model: 'local-1',
      prompt: 'Hello {{ inputs.name }}',
    }
    const retry = { max_attempts: 2, initial_interval: '10ms' }
    const node = { id: 'ask', type: 'ai_prompt', config: { ...base, ...config }, retry }
    const id = await queueRun(db, organizationId, { nodes: [node] }, { name: 'Ada' })
    const { status, error } = await untilRun(db, id)
    const row = await db.system('run_nodes').where({ run_id: id }).first()
    return { status, error, row }
  }

  it('sends the conversation with the key, and takes the answer', async () => {
    const messages = [{ role: 'assistant', content: 'Yes?' }]
    const more = { system: 'Be short.', messages, temperature: 0, max_tokens: 50 }
    const { row } = await ask(more, chat('Hello.'))
    deepEqual(row.output, {
      text: 'Hello.',
      data: null,
      model: 'local-1',
      finish_reason: 'stop',
      tool_calls: [],
      usage: { input_tokens: 12, output_tokens: 3 },
    })
    const [{ headers, body }] = asked as [Asked]
    equal(headers.authorization, `Bearer ${KEY}`)
    match(String(headers['idempotency-key']), /:ask$/)
    deepEqual(body, {
      model: 'local-1',
      messages: [
        { role: 'system', content: 'Be short.' },
        ...messages,
        { role: 'user', content: 'Hello Ada' },
      ],
      temperature: 0,
      max_tokens: 50,
    })
    equal(row.input.api_key, '[masked]')
  })

  it('has exactly the members of its schema', async () => {
    const { row } = await ask({ output_schema: schema }, chat('```json\n{"urgency":"high","score":3}\n```'))
    deepEqual(row.output.data, { urgency: 'high', score: 3 })
    const format = { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } }
    deepEqual(asked[0]!.body.response_format, format)
    const { additionalProperties: _, ...open } = schema
    await ask({ output_schema: open }, chat('{"urgency":"low","score":0}'))
    equal(asked[0]!.body.response_format.json_schema.strict, false)
  })

  it('asks again where the answer does not fit, and says why it does not', async () => {
    const wrong = chat('{"urgency":"medium","score":-1}')
    const { row } = await ask({ output_schema: schema }, wrong, chat('{"urgency":"low","score":0}'))
    deepEqual([row.attempt, row.output.data], [2, { urgency: 'low', score: 0 }])
    const { error } = await ask({ output_schema: schema }, wrong, wrong)
    equal(error?.code, 'ai_output_invalid')
    match(error!.message, /urgency must be one of low, high; score /)
    const { error: text } = await ask({ output_schema: schema }, chat('It is high.'), chat('High!'))
    match(text!.message, /it is not JSON/)
  })

  it('does not ask again where that is of no use', async () => {
    const cases: [Reply, string, RegExp][] = [
      [
        { status: 401, body: { error: { message: `Incorrect API key provided: ${KEY}` } } },
        'ai_unauthorized',
        /Incorrect API key provided: \[masked\]/,
      ],
      [{ status: 400, body: { error: { message: 'no such model' } } }, 'ai_failed', /400: no such model/],
      [
        { status: 429, body: { error: { message: 'no money', code: 'insufficient_quota' } } },
        'ai_failed',
        /no money/,
      ],
      [{ body: { hello: 'world' } }, 'ai_failed', /check base_url/],
      [{ status: 307, headers: { location: 'http://127.0.0.1:1/' }, body: {} }, 'ai_failed', /answered 307/],
      [chat('{"urgency":"l', { finish_reason: 'length' }), 'ai_truncated', /max_tokens/],
      [chat('', { message: { content: null, refusal: 'I cannot.' } }), 'ai_refused', /I cannot/],
    ]
    for (const [reply, code, message] of cases) {
      const { error, row } = await ask({ output_schema: schema }, reply)
      deepEqual([error?.code, row.attempt, asked.length], [code, 1, 1], JSON.stringify(reply))
      match(error!.message, message)
    }
  })

  it('waits as long as the endpoint asks', async () => {
    const { row } = await ask({}, { status: 429, headers: { 'retry-after': '1' }, body: {} }, chat('Hello.'))
    equal(row.output.text, 'Hello.')
    ok(asked[1]!.at - asked[0]!.at >= 990, `${asked[1]!.at - asked[0]!.at} ms`)
  })

  describe('with tools', () => {
    const calls = (...made: [name: string, args: unknown][]): Reply =>
      chat('', {
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          tool_calls: made.map(([name, args], n) => ({
            id: `call_${n}`,
            type: 'function',
            function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
          })),
        },
      })
    const tools = [
      { tool: 'search_records', entities: ['contacts'] },
      { tool: 'get_record', entities: ['contacts'] },
    ]
    /** The results of its tool calls that the model got in the last request. */
    // biome-ignore lint/suspicious/noExplicitAny: JSON
    const told = (): any[] =>
      asked
        .at(-1)!
        .body.messages.filter(({ role }: { role: string }) => role === 'tool')
        .map(({ content }: { content: string }) => JSON.parse(content))
    const create = (organization: string, first_name: string) =>
      db.tenant(organization, testActor, (tx) =>
        createRecord(
          tx,
          'contacts',
          createSchema('contacts').parse({ first_name, email: `${first_name}@x.test` }),
        ),
      )
    let ada: Record<string, unknown>

    before(async () => {
      ada = await create(organizationId, 'ada')
      await create(await createOrganization(db), 'eve')
    })

    it('reads records of the organization for the model, until it answers', async () => {
      const search = { entity: 'contacts', filters: { 'first_name[contains]': 'a' } }
      const { row } = await ask(
        { tools, output_schema: schema },
        calls(['search_records', search]),
        calls(['get_record', { entity: 'contacts', id: ada.id }]),
        chat('{"urgency":"high","score":3}'),
      )
      deepEqual(row.output, {
        text: '{"urgency":"high","score":3}',
        data: { urgency: 'high', score: 3 },
        model: 'local-1',
        finish_reason: 'stop',
        usage: { input_tokens: 36, output_tokens: 9 },
        tool_calls: [
          { tool: 'search_records', arguments: search, error: null },
          { tool: 'get_record', arguments: { entity: 'contacts', id: ada.id }, error: null },
        ],
      })
      const [first, , third] = asked.map(({ body }) => body)
      deepEqual(
        first.tools.map((one: { type: string; function: { name: string; parameters: object } }) => [
          one.type,
          one.function.name,
          (one.function.parameters as { properties: { entity: object } }).properties.entity,
        ]),
        ['search_records', 'get_record'].map((name) => [
          'function',
          name,
          { type: 'string', enum: ['contacts'] },
        ]),
      )
      deepEqual(
        third.messages.map(({ role, tool_call_id }: Record<string, unknown>) => [role, tool_call_id]),
        [
          ['user', undefined],
          ['assistant', undefined],
          ['tool', 'call_0'],
          ['assistant', undefined],
          ['tool', 'call_0'],
        ],
      )
      // Without the contact of the other organization.
      const [found, read] = told()
      deepEqual([found.data.length, found.data[0].id, read.email], [1, ada.id, 'ada@x.test'])
      const keys = asked.map(({ headers }) => headers['idempotency-key'])
      equal(new Set(keys).size, 3)
    })

    it('refuses what the node does not name, and tells the model', async () => {
      const { row } = await ask(
        { tools },
        calls(
          ['search_records', { entity: 'deals' }],
          ['delete_record', { entity: 'contacts', id: ada.id }],
          ['get_record', { entity: 'contacts', id: '1' }],
          ['get_record', '{"entity": '],
          ['search_records', { entity: 'contacts', sort: 'nope' }],
          ['get_record', { entity: 'contacts', id: '01a00000-0000-7000-8000-000000000001' }],
        ),
        chat('Sorry.'),
      )
      equal(row.output.text, 'Sorry.')
      const reasons = [
        /^not_allowed: entity must be one of contacts/,
        /^not_allowed: There is no tool delete_record/,
        /^invalid_arguments: id /,
        /^invalid_arguments: The arguments are not a JSON/,
        /^validation_error: contacts cannot be sorted by nope/,
        /^not_found: /,
      ]
      reasons.forEach((reason, n) => {
        match(row.output.tool_calls[n].error, reason)
        match(told()[n].error, reason)
      })
      ok(await db.system('contacts').where({ id: ada.id }).first('id'), 'the contact is deleted')
    })

    it('ends after some rounds, the last of which asks for an answer', async () => {
      const again = calls(['search_records', { entity: 'contacts' }])
      const { error } = await ask({ tools }, ...Array.from({ length: 6 }, () => again))
      equal(error?.code, 'ai_too_many_calls')
      deepEqual(
        asked.map(({ body }) => body.tool_choice),
        ['auto', 'auto', 'auto', 'auto', 'auto', 'none'],
      )
      const many = Array.from({ length: 9 }, (): [string, unknown] => [
        'search_records',
        { entity: 'contacts' },
      ])
      const { row } = await ask({ tools }, calls(...many), chat('Done.'))
      deepEqual(
        row.output.tool_calls.map((call: { error: string | null }) => call.error),
        [...Array.from({ length: 8 }, () => null), 'at most 8 calls are made at once'],
      )
    })

    it('makes no call where the node names no tools', async () => {
      const { row } = await ask({}, calls(['get_record', { entity: 'contacts', id: ada.id }]), chat('No.'))
      equal(asked[0]!.body.tools, undefined)
      match(row.output.tool_calls[0].error, /^not_allowed: There is no tool/)
    })
  })

  it('cannot reach a private address that the operator has not allowed', async () => {
    const { error } = await ask({ base_url: 'http://10.0.0.1/v1' })
    equal(error?.code, 'egress_refused')
  })
})
