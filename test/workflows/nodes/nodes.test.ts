import { deepEqual, equal, ok, rejects, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { z } from 'zod'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { SCOPES, type Scope } from '../../../db/model/access/scopes.ts'
import { validateDefinition } from '../../../workflows/authoring/validate.ts'
import type { HttpResponse } from '../../../workflows/effects/http.ts'
import { type Effects, ports } from '../../../workflows/effects/index.ts'
import type { KeyValues } from '../../../workflows/effects/key-values.ts'
import type { Knowledge } from '../../../workflows/effects/knowledge.ts'
import type { Lookups } from '../../../workflows/effects/lookups.ts'
import type { People, Person } from '../../../workflows/effects/people.ts'
import type { Records } from '../../../workflows/effects/records.ts'
import { contextOf, effectsFor } from '../../../workflows/interpret/context.ts'
import { renderConfig } from '../../../workflows/interpret/late.ts'
import type { NodeError } from '../../../workflows/language/node-error.ts'
import { memberType, UNKNOWN } from '../../../workflows/language/value-types.ts'
import { compare, compareKeys, sortKey } from '../../../workflows/nodes/compare.ts'
import { defineNode, type NodeResult } from '../../../workflows/nodes/define.ts'
import { findNodeType, nodeTypes } from '../../../workflows/nodes/index.ts'
import type { AnalyticsResult } from '../../../workflows/shared/analytics.ts'
import { httpResponse } from '../../support/http-response.ts'

const ID = '019a0000-0000-7000-8000-000000000001'

/** Values that examples read besides their inputs. */
const SECRETS = { openai_key: 'sk-example' }

const COLLECTION = '019a0000-0000-7000-8000-000000000002'
const PASSAGE = {
  document_id: ID,
  collection_id: COLLECTION,
  title: 'Payments',
  heading: 'Refunds',
  text: 'Refunds take five days.',
  score: 0.62,
  match: 'all' as const,
  tags: ['billing'],
  source_url: 'https://help.example.com/payments',
}

/** The response of a language model. */
const CHAT = {
  model: 'gpt-4.1-mini',
  choices: [{ message: { content: '{"urgency":"high"}' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 42, completion_tokens: 5 },
}

/** The effects of a node, with the results that the examples expect. */
function outside(http: Partial<HttpResponse> = {}): { effects: Effects; requests: unknown[] } {
  const requests: unknown[] = []
  const upsert: Records['upsert'] = async (_, __, fields) => ({
    record: { id: ID, object: 'contact', ...fields },
    created: true,
  })
  const answer = httpResponse({
    status: 201,
    headers: { 'content-type': 'application/json' },
    body: { id: 7 },
  })
  return {
    requests,
    effects: {
      records: { upsert } as Records,
      analytics: { query: async () => nodeTypes.analytics_query!.example.output as AnalyticsResult },
      keyValues: {
        set: async (key, value) => ({ key, value, stored: true, expires_at: '2026-01-31T00:00:00.000Z' }),
      } as Partial<KeyValues> as KeyValues,
      knowledge: {
        search: async () => ({ passages: [PASSAGE], has_more: false }),
        add: async (_, { external_id, title }) => ({
          id: ID,
          collection_id: COLLECTION,
          external_id,
          title,
          passages: 1,
          version: 1,
          created: true,
        }),
      } satisfies Knowledge,
      events: { emit: async () => ID },
      responses: { respond: async () => ID },
      mail: {
        send: async ({ to }) => ({
          message_id: '<2f8b6c0e4d1a79355c3e9b7f60d2a481@example.com>',
          accepted: to.map(({ address }) => address),
          rejected: [],
        }),
      },
      rates: {
        latest: async () => ({ base: 'EUR', date: '2026-01-05', rates: { USD: '1.2', JPY: '150.5' } }),
        shipped: async () => ({ base: 'EUR', date: '2025-01-05', shipped: true, rates: { USD: '1.1' } }),
      },
      sandbox: { run: async () => ({ result: { total: 45 }, log: ['3 prices'] }) },
      lookups: {} as Lookups,
      people: {
        next: async () => nodeTypes.people!.example.output as Person,
      } as Partial<People> as People,
      runs: { start: async () => ({ run_id: ID, workflow_id: ID }) },
      http: {
        async request(request) {
          requests.push(request)
          const chat = request.url.endsWith('/chat/completions') ? { status: 200, body: CHAT } : {}
          return { ...answer, ...chat, ...http }
        },
        async fetchFile(request, { takes, name = 'invoice.pdf' }) {
          requests.push(request)
          const response = { ...answer, ...http }
          const file = { file_id: ID, name, content_type: 'application/pdf', size: 7 }
          return { ...response, file: takes(response.status) ? file : null }
        },
      },
    },
  }
}

/** Runs a node with only the effects that it declares and its class allows. */
async function run(
  name: string,
  config: unknown,
  { effects } = outside(),
  scope: Record<string, unknown> = {},
): Promise<NodeResult> {
  const type = findNodeType(name)!
  const effectClass = type.effectClass(config as Record<string, unknown>)
  const context = contextOf({
    run: { id: 'run', workflow_id: ID, workflow_name: 'Test' },
    organization: { id: ID, currency: 'EUR', timezone: 'UTC' },
    now: new Date('2026-01-01T00:00:00Z'),
    node: { id: 'node', attempt: 1 },
    signal: new AbortController().signal,
    scope,
    effects: effectsFor(type.effects, effectClass, (name) => effects[name]),
  })
  return type.run(type.config.parse(config), context)
}

describe('node types', () => {
  for (const type of Object.values(nodeTypes))
    it(`${type.type} produces the output of its example`, async () => {
      const { config, inputs, answer, output, handle } = type.example
      const scope = { secrets: SECRETS, ...inputs }
      const begun = await run(type.type, renderConfig(type, config, scope), outside(), scope)
      const result = answer ? type.answered!(answer) : begun
      deepEqual(result.output, output)
      deepEqual(type.output.parse(result.output), output)
      if (handle) equal('handle' in result && result.handle, handle)
      if (handle) ok(type.handles(config).some(({ name }) => name === handle))
      ok(z.toJSONSchema(type.config, { io: 'input', unrepresentable: 'any' }))
    })

  for (const type of Object.values(nodeTypes))
    it(`${type.type} is consistent: its example is valid, its effects fit its class, its scopes exist`, () => {
      const { config, inputs = {}, output } = type.example
      const types = Object.keys((inputs.inputs ?? {}) as object).map((name) => [name, { type: 'any' }])
      const definition = {
        name: 'Test',
        nodes: [
          { id: 'it', type: type.type, config },
          ...(type.body ? [{ id: 'body', type: 'stop', config: {} }] : []),
        ],
        edges: type.body ? [{ from: 'it', handle: type.body, to: 'body' }] : [],
        inputs: Object.fromEntries(types),
      }
      deepEqual(validateDefinition(definition, catalogue).result.errors, [])
      for (const name of type.effects) ok(ports[name].classes.includes(type.effectClass(config)), name)
      for (const scope of type.scopes(config, catalogue)) ok(SCOPES.includes(scope as Scope), scope)
      const unknown = { catalogue, typeOf: () => UNKNOWN, result: () => UNKNOWN }
      const declared = type.outputType(config, unknown)
      for (const field of Object.keys(output as object)) ok('type' in memberType(declared, field), field)
    })

  it('one with a scoped effect must declare its scopes', () => {
    const define = (scopes?: () => string[]) =>
      defineNode({
        type: 'test',
        engine: 1,
        category: 'records',
        title: 'Test',
        description: 'Test',
        effect: 'read',
        effects: ['records'],
        config: z.strictObject({}),
        output: z.unknown(),
        handles: () => [],
        ...(scopes ? { scopes } : {}),
        example: { config: {}, output: null },
        run: async (_, { records }) => ({ output: await records.get('contacts', ID) }),
      })
    throws(() => define(), /must declare its scopes/)
    deepEqual(define(() => ['contacts:read']).scopes({}, catalogue), ['contacts:read'])
  })

  it('crm_manager needs read to read, write to write, and every kind if a placeholder names the kind', () => {
    const scopes = (config: Record<string, unknown>) => nodeTypes.crm_manager!.scopes(config, catalogue)
    deepEqual(scopes({ operation: 'get', entity: 'contacts', id: ID }), ['contacts:read'])
    for (const filter of ['company.industry[in]', 'associations.companies.name', 'associations.companies'])
      deepEqual(
        scopes({ operation: 'search', entity: 'deals', filters: { [filter]: 'x' } }),
        ['deals:read', 'companies:read'],
        filter,
      )
    deepEqual(scopes({ operation: 'link', entity: 'contacts', target: 'deals' }), [
      'contacts:write',
      'deals:write',
    ])
    const everyKind = Object.keys(catalogue.entities).map((kind) => `${kind}:write`)
    deepEqual(scopes({ operation: '{{ inputs.do }}', entity: '{{ inputs.kind }}' }), everyKind)
    const fields = { name: 'X', company_id: ID, associations: [{ object: 'note', id: ID }] }
    deepEqual(scopes({ operation: 'create', entity: 'deals', fields }), [
      'deals:write',
      'companies:write',
      'notes:write',
    ])
    const upsert = { operation: 'upsert', entity: 'deals', by: 'external_id', fields: {} }
    deepEqual(scopes({ ...upsert, on_create: { company_id: ID }, on_update: { contact_id: ID } }), [
      'deals:write',
      'companies:write',
      'contacts:write',
    ])
  })

  it('crm_manager needs what any filter and field could need if a placeholder gives them', () => {
    const scopes = (config: Record<string, unknown>) => nodeTypes.crm_manager!.scopes(config, catalogue)
    const search = { operation: 'search', entity: 'contacts' }
    deepEqual(scopes({ ...search, filters: { 'associations.deals': 'true' } }), [
      'contacts:read',
      'deals:read',
    ])
    deepEqual(
      [...new Set(scopes({ ...search, filters: '{{ inputs.filters }}' }))].sort(),
      Object.keys(catalogue.entities)
        .map((kind) => `${kind}:read`)
        .sort(),
    )
    const create = { operation: 'create', entity: 'contacts' }
    deepEqual(scopes({ ...create, fields: { created_at: '2020-01-01T00:00:00Z' } }), [
      'contacts:write',
      'records:backdate',
    ])
    ok(scopes({ ...create, fields: '{{ inputs.fields }}' }).includes('records:backdate'))
  })

  it('crm_manager checks the fields of an upsert that only a create or an update writes', () => {
    const upsert = { operation: 'upsert', entity: 'deals', by: 'external_id', fields: { external_id: 'x' } }
    const problems = (config: object) =>
      nodeTypes
        .crm_manager!.check({ ...upsert, ...config }, catalogue)
        .map(({ path, code }) => [code, ...path])
    deepEqual(problems({}), [['missing_value', 'fields']])
    deepEqual(problems({ on_create: { name: 'Acme' }, on_update: { stage: 'won' } }), [])
    deepEqual(problems({ on_create: '{{ inputs.fields }}' }), [])
    deepEqual(problems({ on_create: { name: 'Acme', stge: 'won' }, on_update: { stage: 'wonn' } }), [
      ['unknown_field', 'on_create', 'stge'],
      ['invalid_value', 'on_update', 'stage'],
    ])
  })

  it('delay waits from the time of the segment', async () => {
    const result = await run('delay', { for: '2h' })
    deepEqual('wait_until' in result && result.wait_until, new Date('2026-01-01T02:00:00Z'))
    throws(() => nodeTypes.delay!.config.parse({ for: '2 hours' }))
    throws(() => nodeTypes.delay!.config.parse({ for: '0s' }))
  })

  it('wait_until waits for a time in any form, in a time zone, and not for one that has passed', async () => {
    const wait = async (config: Record<string, unknown>) => {
      const result = await run('wait_until', config)
      return 'wait_until' in result ? result.wait_until.toISOString() : 'past'
    }
    const zone = 'Europe/Zurich'
    const times: [Record<string, unknown>, string][] = [
      [{ until: '2026-03-01T09:30:00Z' }, '2026-03-01T09:30:00.000Z'],
      [{ until: '2026-03-01T09:30:00.123+02:00' }, '2026-03-01T07:30:00.123Z'],
      [{ until: '2026-03-01T09:30:00 -0530', timezone: zone }, '2026-03-01T15:00:00.000Z'],
      [{ until: '2026-03-01' }, '2026-03-01T00:00:00.000Z'],
      [{ until: '2026-01-15T09:30', timezone: zone }, '2026-01-15T08:30:00.000Z'],
      [{ until: '2026-07-15', timezone: zone }, '2026-07-14T22:00:00.000Z'],
      [{ until: '2026-03-29T02:30', timezone: zone }, '2026-03-29T01:30:00.000Z'],
      [{ until: '2026-07-15T09:00', timezone: 'Asia/Kolkata' }, '2026-07-15T03:30:00.000Z'],
      [{ until: '2025-12-31T23:59:59Z' }, 'past'],
      [{ until: '2026-01-01', timezone: zone }, 'past'],
    ]
    for (const [config, expected] of times) equal(await wait(config), expected, JSON.stringify(config))
    deepEqual((await run('wait_until', { until: '2025-01-01' })).output, {
      until: '2025-01-01T00:00:00.000Z',
    })
    for (const until of [
      '',
      'soon',
      '2026-02-30',
      '2026-13-01',
      '2026-03-01T25:00:00Z',
      '01.03.2026',
      '1767225600',
      null,
      5,
    ])
      throws(
        () => nodeTypes.wait_until!.config.parse({ until }),
        /must be a time|expected string/,
        String(until),
      )
    throws(() => nodeTypes.wait_until!.config.parse({ until: '2026-03-01', timezone: 'CET+1' }), /IANA/)
    await rejects(run('wait_until', { until: '9999-01-01' }), /more than 5 years ahead/)
  })

  it('stop ends the run', async () => {
    const result = await run('stop', {})
    deepEqual('end' in result && result.end, { status: 'completed' })
  })

  it('switch leaves by the first case that matches, else by default', async () => {
    const cases = { b: 1, a: [1, 2], none: null }
    for (const [value, handle] of [
      ['1', 'b'],
      [2, 'a'],
      [null, 'none'],
      [3, 'default'],
    ] as const) {
      const result = await run('switch', { value, cases })
      equal('handle' in result && result.handle, handle)
    }
    throws(() => nodeTypes.switch!.config.parse({ value: 1, cases: { error: 1 } }))
  })

  it('sort_items sorts by several fields, missing values last in both directions, and is stable', async () => {
    const sort = async (items: unknown[], by: unknown[]) =>
      ((await run('sort_items', { items, by })).output as { items: unknown[] }).items
    const [a, b, c] = [
      { n: 1, id: 'a' },
      { n: 1, id: 'b' },
      { n: '2', id: 'c' },
    ]
    const nothing = { n: '', id: 'd' }
    deepEqual(await sort([nothing, c, b, a], [{ field: 'n' }]), [b, a, c, nothing])
    deepEqual(await sort([nothing, b, a, c], [{ field: 'n', direction: 'desc' }]), [c, b, a, nothing])
    const by = [{ field: 'n' }, { field: 'id', direction: 'desc' }]
    deepEqual(await sort([a, 'no object', c, b], by), [b, a, c, 'no object'])
    const nested = [
      { at: { x: true } },
      { at: { x: 'text' } },
      { at: null },
      { at: { x: '2026-01-01' } },
      { at: { x: 5 } },
    ]
    deepEqual(
      await sort(nested, [{ field: 'at.x' }]),
      [4, 3, 1, 0, 2].map((index) => nested[index]),
    )
    const inherited = { field: 'constructor', direction: 'desc' }
    const own: object = { constructor: 1 }
    deepEqual(await sort([{}, own], [inherited]), [own, {}])
    const items = Array.from({ length: 10_001 }, (_, n) => ({ n }))
    await rejects(sort(items, [{ field: 'n' }]), /10000/)
    deepEqual((await sort(items.slice(1).reverse(), [{ field: 'n' }])).slice(0, 2), [{ n: 1 }, { n: 2 }])
  })

  it('convert_currency is exact, and rounds once, to the decimals of the currency', async () => {
    const convert = async (config: Record<string, unknown>) =>
      (await run('convert_currency', config)).output as Record<string, unknown>
    const amounts: [Record<string, unknown>, string][] = [
      [{ amount: '100', from: 'EUR', to: 'USD' }, '120.00'],
      [{ amount: 0.1, from: 'EUR', to: 'USD' }, '0.12'],
      [{ amount: '100', from: 'USD', to: 'JPY' }, '12542'],
      [{ amount: '-1', from: 'USD', to: 'EUR' }, '-0.83'],
      [{ amount: '12345678901234567890.12', from: 'EUR', to: 'EUR' }, '12345678901234567890.12'],
      [{ amount: '1', from: 'EUR', to: 'KWD', rate: '0.33335' }, '0.333'],
      [{ amount: '1', from: 'EUR', to: 'KWD', rate: '0.3335' }, '0.334'],
      [{ amount: '1', from: 'EUR', to: 'KWD', rate: '0.3325', rounding: 'half_even' }, '0.332'],
      [{ amount: '1', from: 'EUR', to: 'KWD', rate: '0.3321', rounding: 'up' }, '0.333'],
      [{ amount: '-1', from: 'EUR', to: 'KWD', rate: '0.3329', rounding: 'down' }, '-0.332'],
      [{ amount: '-0.001', from: 'EUR', to: 'USD' }, '0.00'],
      [{ amount: '10', from: 'EUR', to: 'USD', decimals: 4 }, '12.0000'],
      [{ amount: '19.5583', from: 'BGN', to: 'XOF' }, '6560'],
      [{ amount: '1', from: 'HRK', to: 'USD' }, '0.16'],
    ]
    for (const [config, amount] of amounts)
      equal((await convert(config)).amount, amount, JSON.stringify(config))
    equal((await convert({ amount: '1', from: 'BGN', to: 'EUR' })).rates_date, null)
    await rejects(convert({ amount: '1', from: 'USD', to: 'XXX' }), /no rate of XXX: there are BAM, BGN/)
    for (const amount of ['1,000.00', '1e3', '', '0.1234567890123', 1e21, Number.NaN])
      throws(
        () => nodeTypes.convert_currency!.config.parse({ amount, from: 'USD', to: 'EUR' }),
        String(amount),
      )
    for (const rate of ['0', '-1'])
      throws(() => nodeTypes.convert_currency!.config.parse({ amount: 1, from: 'USD', to: 'EUR', rate }))
  })

  it('respond refuses a status that has no effect, other headers than its own, and two bodies', () => {
    const { config } = nodeTypes.respond!
    for (const refused of [
      { status: 503 },
      { status: 302, headers: { 'retry-after': '1' } },
      { headers: { 'Set-Cookie': 'a=b' } },
      { headers: { Connection: 'close' } },
      { headers: { 'X-Accel-Redirect': '/etc/passwd' } },
      { headers: { 'retry-after': '1\r\nSet-Cookie: a=b' } },
      { text: 'a', json: 'b' },
      { status: 204, text: 'a' },
      { text: 'x'.repeat(256 * 1024 + 1) },
      { json: ['ü'.repeat(128 * 1024)] },
    ])
      ok(!config.safeParse(refused).success, JSON.stringify(refused).slice(0, 100))
    for (const allowed of [
      {},
      { status: 204 },
      { json: null },
      { headers: { 'Retry-After': '1' }, xml: '<a/>' },
    ])
      ok(config.safeParse(allowed).success, JSON.stringify(allowed))
  })

  it('emit_event refuses the names that the service raises', () => {
    throws(() => nodeTypes.emit_event!.config.parse({ event: 'contact.created' }))
    throws(() => nodeTypes.emit_event!.config.parse({ event: 'nonsense' }))
  })

  it('api_request sends its key with writing methods, and fails on unexpected statuses', async () => {
    const host = outside()
    await run('api_request', { method: 'POST', url: 'https://x.test/', query: { page: 2 } }, host)
    deepEqual(host.requests, [
      {
        method: 'POST',
        url: 'https://x.test/',
        headers: { 'Idempotency-Key': 'run:node' },
        query: { page: '2' },
        follow_redirects: true,
        body_to_other_origins: false,
      },
    ])
    for (const [status, retryable] of [
      [500, true],
      [429, true],
      [404, false],
    ] as const)
      await rejects(
        run('api_request', { url: 'https://x.test/' }, outside({ status })),
        (error: NodeError) => {
          equal(error.code, 'unexpected_status')
          equal(error.retryable, retryable)
          return true
        },
      )
    const found = await run(
      'api_request',
      { url: 'https://x.test/', expected_statuses: ['2xx', 404] },
      outside({ status: 404 }),
    )
    equal((found.output as { status: number }).status, 404)
    const binary = { code: 'binary_body', message: 'the body is binary (image/png, 5 bytes)' } as const
    const image = outside({ body: null, body_error: binary })
    const { output } = await run('api_request', { url: 'https://x.test/' }, image)
    const said = { ...binary, message: `${binary.message}: \`response: file\` keeps it as a file` }
    deepEqual([(output as HttpResponse).body, (output as HttpResponse).body_error], [null, said])
    const kept = await run(
      'api_request',
      { url: 'https://x.test/', response: 'file' },
      outside({ status: 200 }),
    )
    deepEqual(kept.output, {
      status: 200,
      headers: { 'content-type': 'application/json' },
      file: { file_id: ID, name: 'invoice.pdf', content_type: 'application/pdf', size: 7 },
    })
    await rejects(
      run('api_request', { url: 'https://x.test/', response: 'file' }, outside({ status: 404 })),
      (error: NodeError) => error.code === 'unexpected_status',
    )
  })
})

describe('comparing', () => {
  const holds: [unknown, Parameters<typeof compare>[1], unknown][] = [
    ['Ada', 'eq', 'ada'],
    ['10.00', 'eq', 10],
    ['9', 'lt', '10'],
    [null, 'eq', null],
    [null, 'ne', 'x'],
    ['', 'is_empty', undefined],
    ['2026-01-02', 'gt', '2026-01-01T23:59:59Z'],
    [['vip'], 'contains', 'VIP'],
    ['Hello', 'contains', 'ell'],
    ['x', 'in', ['X']],
    [5, 'not_in', [1, 2]],
    [{ a: 1, b: 2 }, 'eq', { b: 2, a: 1 }],
    [0, 'is_not_empty', undefined],
    ['abc', 'starts_with', 'AB'],
    ['abc', 'ends_with', 'BC'],
    [false, 'eq', false],
    [true, 'eq', 'true'],
    ['abc', 'not_contains', 'x'],
    [3, 'gte', 3],
    [3, 'lte', 3],
  ]
  for (const [left, operator, right] of holds)
    it(`${JSON.stringify(left)} ${operator} ${JSON.stringify(right)}`, () =>
      equal(compare(left, operator, right), true))

  it('finds no value greater or less than an empty one', () => {
    for (const operator of ['gt', 'gte', 'lt', 'lte'] as const) equal(compare(null, operator, 1), false)
  })

  it('sorts values of all types in one order, within a type by gt and lt', () => {
    const scalar = fc.oneof(
      fc.integer(),
      fc.double({ noNaN: true }),
      fc.boolean(),
      fc.string(),
      fc.constant(null),
      fc.integer().map(String),
      fc
        .date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') })
        .map((date) => date.toISOString()),
    )
    const keys = (...values: unknown[]) => values.map((value) => sortKey(value))
    fc.assert(
      fc.property(scalar, scalar, scalar, (one, two, three) => {
        const [a, b, c] = keys(one, two, three)
        if (!a || !b || !c) return
        equal(Math.sign(compareKeys(a, b)), -Math.sign(compareKeys(b, a)) || 0)
        if (compareKeys(a, b) <= 0 && compareKeys(b, c) <= 0) ok(compareKeys(a, c) <= 0, 'is transitive')
        if (a.rank === b.rank && typeof one !== 'boolean')
          equal(compareKeys(a, b) > 0, compare(one, 'gt', two), 'agrees with gt')
      }),
    )
    const sorted = [-1, '2', 10, '2026-01-01', '2026-01-01T00:00:01Z', 'a', 'B', false, true, [1]]
    deepEqual(
      sorted.toReversed().toSorted((a, b) => compareKeys(sortKey(a)!, sortKey(b)!)),
      sorted,
    )
    deepEqual(keys(null, undefined, '', ' ', [], {}), Array(6).fill(undefined))
  })
})
