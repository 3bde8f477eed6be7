import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkName } from './computation.ts'
import type { Client } from './stack-client.ts'
import { until } from './until.ts'

/** A few requests whose cost of computation the tenant controls. Throws for an unexpected response. */
export interface Attack {
  name: string
  kind: WorkName
  /** False if it is refused before it is handed to a thread, although others of its kind are. */
  inThread?: false
  run(client: Client): Promise<void>
}

/** A spec whose first node has this number of cases. They lead to different nodes, which join in one. */
export function wideSwitch(cases: number): string {
  const all = Array.from({ length: cases }, (_, index) => index)
  return [
    'name: Wide',
    'inputs: {a: string}',
    'nodes:',
    '  s:',
    '    type: switch',
    `    config: {value: "{{ inputs.a }}", cases: {${all.map((n) => `c${n}: ${n}`).join(', ')}}}`,
    `    next: {${all.map((n) => `c${n}: n${n}`).join(', ')}}`,
    ...all.map((n) => `  n${n}: {type: delay, config: {for: 1s}, next: z}`),
    '  z: {type: set_fields, config: {fields: {a: "{{ nodes.s.output.case }}"}}}',
    'outputs: {a: "{{ nodes.z.output.a }}"}',
  ].join('\n')
}

const PATTERN =
  '(x+x+)+y|a{1,30}b|b{1,30}c|c{1,30}d|d{1,30}e|e{1,30}f|f{1,30}g|g{1,30}h|h{1,30}i|(a|b|ab){1,30}z|[a-m]{1,30}q|[^z]{1,30}w|(abc|abd){1,20}v|[a-z]{1,40}u|(a?){30}t'

export const ATTACKS: Attack[] = [
  {
    name: 'validation of a switch with 400 cases',
    kind: 'specs',
    async run({ v1 }) {
      const { status, body } = await v1('POST', '/workflows/validate', { spec: wideSwitch(400) })
      assert.equal(status, 200)
      assert.equal(body.valid, true, JSON.stringify(body).slice(0, 500))
    },
  },
  {
    name: 'a large pattern on a large text, in a mapping rule',
    kind: 'mapping',
    inThread: false,
    async run({ hook }) {
      const rules = [
        { from: 'email', to: 'email' },
        {
          from: 'text',
          to: 'last_name',
          skip_if: PATTERN,
          transforms: [{ type: 'replace', pattern: PATTERN, by: '' }],
        },
      ]
      // It contains no match, so all of it is read.
      const text = 'a'.repeat(131_000)
      const { status } = await hook(
        { field_mapping: { mode: 'manual', rules } },
        JSON.stringify({ email: 'ada@example.com', text }),
      )
      assert.equal(status, 422, 'the pattern is refused when it is saved')
    },
  },
  {
    name: 'patterns at their limit on a large text, in mapping rules',
    kind: 'mapping',
    async run({ hook }) {
      const pattern = '[^z]{1,200}w|[a-m]{1,200}q'
      const rules = Array.from({ length: 5 }, () => ({ from: 'text', to: 'last_name', skip_if: pattern }))
      const text = 'a'.repeat(131_000)
      const { status, body } = await hook(
        { field_mapping: { mode: 'manual', rules: [{ from: 'email', to: 'email' }, ...rules] } },
        JSON.stringify({ email: 'ada@example.com', text }),
      )
      // The webhook was created: what was refused is the name, which is too long.
      assert.deepEqual([status, body.error], [400, 'validation_failed'])
    },
  },
  {
    name: 'a date format of 900 KB, in a node test',
    kind: 'placeholders',
    async run({ v1 }) {
      const { status, body } = await v1('POST', '/workflows/nodes/test', {
        node_type: 'set_fields',
        config: { fields: { a: '{{ "now" | date: inputs.f }}' } },
        inputs: { f: '%Y-%m-%d %H:%M '.repeat(60_000) },
        confirm: true,
      })
      assert.equal(status, 200)
      assert.equal(body.status, 'failed')
    },
  },
  {
    name: 'a CSV row of 30 MiB of commas',
    kind: 'csv',
    async run({ v1 }) {
      const made = await v1('POST', '/imports', { entity: 'contacts' })
      assert.equal(made.status, 201)
      const file = Buffer.concat([Buffer.from('email,first_name\n'), Buffer.alloc(30 * 1024 * 1024, ',')])
      const { status, body } = await v1('PUT', `/imports/${made.body.id}/file`, file, {
        'content-type': 'text/csv',
      })
      assert.equal(status, 400, JSON.stringify(body).slice(0, 300))
      assert.match(body.error!.message, /line 2/)
    },
  },
  {
    name: 'creation of a workflow of 240 KB',
    kind: 'specs',
    async run({ v1 }) {
      const { status } = await v1('POST', '/workflows', { spec: manyPlaceholders() })
      assert.equal(status, 201)
    },
  },
  {
    name: 'validation of a raw definition of 1 MB',
    kind: 'specs',
    async run({ v1 }) {
      const fields = Object.fromEntries(Array.from({ length: 30_000 }, (_, n) => [`f${n}`, '{{ inputs.a }}']))
      const { status, body } = await v1('POST', '/workflows/validate', {
        definition: {
          name: 'Big',
          inputs: { a: 'string' },
          nodes: [{ id: 'a', type: 'set_fields', config: { fields } }],
        },
      })
      assert.deepEqual([status, body.valid], [200, false])
    },
  },
  {
    name: 'a run of many nodes with costly expressions',
    kind: 'placeholders',
    async run({ v1 }) {
      const made = await v1('POST', '/workflows', { spec: costlyNodes(30) })
      assert.equal(made.status, 201, JSON.stringify(made.body).slice(0, 300))
      const { status, body } = await v1(
        'POST',
        `/workflows/${made.body.workflow_id}/run`,
        { inputs: { text: 'a<b& '.repeat(6_000) }, confirm: true },
        { prefer: 'wait=60' },
      )
      assert.equal(status, 200, JSON.stringify(body).slice(0, 300))
      assert.equal(body.status, 'completed', JSON.stringify(body).slice(0, 300))
    },
  },
  {
    name: 'a node test that sorts and compares large lists',
    kind: 'lists',
    async run({ v1 }) {
      const items = Array.from({ length: 10_000 }, (_, n) => ({ a: `k${(n * 7919) % 10_007}`, b: n % 7 }))
      const { status, body } = await v1('POST', '/workflows/nodes/test', {
        node_type: 'sort_items',
        config: { items: '{{ inputs.items }}', by: [{ field: 'b' }, { field: 'a', direction: 'desc' }] },
        inputs: { items },
        confirm: true,
      })
      assert.deepEqual([status, body.status], [200, 'completed'])
    },
  },
  {
    name: 'the preview of a node with costly expressions',
    kind: 'placeholders',
    async run({ v1 }) {
      const { status } = await v1('POST', '/workflows/nodes/test', {
        node_type: 'set_fields',
        config: { fields: { a: '{{ inputs.text | escape | url_encode }}'.repeat(100) } },
        inputs: { text: '&'.repeat(500_000) },
      })
      assert.equal(status, 200)
    },
  },
  hooked('automatic mapping of a payload of 10,000 values', () => [
    JSON.stringify({
      email: 'ada@example.com',
      contacts: Array.from({ length: 3_000 }, (_, n) => ({
        full_name: `Ada ${n}`,
        your_email: `a${n}@example.com`,
        x: 1,
      })),
    }),
    'application/json',
  ]),
  hooked('automatic mapping of long names and values', () => [
    JSON.stringify({ email: 'ada@example.com', full_name: 'a '.repeat(400_000), phone: '1 '.repeat(50_000) }),
    'application/json',
  ]),
  hooked('XML of 40,000 marks', () => [
    `<lead><email>ada@example.com</email>${'<a b="1">x</a>'.repeat(9_900)}</lead>`,
    'application/xml',
  ]),
  hooked('XML of a text of entities', () => [
    `<lead><email>ada@example.com</email><a>${'&lt;'.repeat(250_000)}</a></lead>`,
    'application/xml',
  ]),
  hooked('a form of 1,000 nested fields', () => [
    `email=ada%40example.com&${Array.from({ length: 999 }, (_, n) => `a${'[b]'.repeat(30)}[k${n}]=${'%41'.repeat(250)}`).join('&')}`,
    'application/x-www-form-urlencoded',
  ]),
  {
    name: 'an import of rows and cells at their limits',
    kind: 'csv',
    async run({ v1 }) {
      const made = await v1('POST', '/imports', { entity: 'contacts' })
      const header = ['email', ...Array.from({ length: 999 }, (_, n) => `Column ${n}`)].join(',')
      const rows = Array.from({ length: 200 }, (_, n) => `a${n}@example.com${',"x,x"'.repeat(999)}`)
      const wide = `b@example.com${','.repeat(120_000)}`
      const { status, body } = await v1(
        'PUT',
        `/imports/${made.body.id}/file`,
        Buffer.from([header, ...rows, wide, wide].join('\n')),
        { 'content-type': 'text/csv' },
      )
      assert.equal(status, 200, JSON.stringify(body).slice(0, 300))
      const started = await v1('POST', `/imports/${made.body.id}/start`, {})
      assert.equal(started.status, 200, JSON.stringify(started.body).slice(0, 300))
      for (let answer = started; ['queued', 'running'].includes(String(answer.body.status)); ) {
        await sleep(100)
        answer = await v1('GET', `/imports/${made.body.id}`)
      }
    },
  },
  {
    name: 'an upload of a million short rows',
    kind: 'csv',
    async run({ v1 }) {
      const made = await v1('POST', '/imports', { entity: 'contacts' })
      const { status } = await v1(
        'PUT',
        `/imports/${made.body.id}/file`,
        Buffer.concat([Buffer.from('email,first_name\n'), Buffer.from('a,\n'.repeat(300_000))]),
        { 'content-type': 'text/csv' },
      )
      assert.equal(status, 200)
    },
  },
  {
    name: 'filters and a search of 14 KB',
    kind: 'searches',
    async run({ v1 }) {
      for (const query of [
        `q=${'ab '.repeat(60)}`,
        `job_title[in]=${'x,'.repeat(6_500)}x`,
        `tags[contains]=${'x,'.repeat(6_500)}x`,
        Array.from({ length: 600 }, (_, n) => `frist_name${n}=x`).join('&'),
        `cursor=${'A'.repeat(13_000)}`,
      ])
        await v1('GET', `/objects/contacts?${query}`)
    },
  },
  {
    name: 'a batch of 1 MB with unknown fields',
    kind: 'records',
    async run({ v1 }) {
      const data = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`first_nam${n}`, 'x']))
      const operations = Array.from({ length: 200 }, () => ({ op: 'create', data }))
      const { status } = await v1('POST', '/objects/contacts/batch', { operations })
      assert.ok([200, 422].includes(status), String(status))
    },
  },
  {
    name: 'a record with 40,000 unknown fields, and one of long texts',
    kind: 'records',
    async run({ v1 }) {
      const wrong = Object.fromEntries(Array.from({ length: 40_000 }, (_, n) => [`frist_name_${n}`, 1]))
      assert.equal((await v1('POST', '/objects/contacts', wrong)).status, 422)
      const custom_fields = Object.fromEntries(
        Array.from({ length: 14 }, (_, n) => [`f${n}`, 'word '.repeat(13_000)]),
      )
      await v1('POST', '/objects/contacts', { last_name: 'Long', custom_fields })
    },
  },
  {
    name: 'JSON that breaks at its end',
    kind: 'records',
    async run({ v1 }) {
      const text = `{"first_name": "${'a'.repeat(99_000)}", "x": [${'1,'.repeat(400)}`
      assert.equal((await v1('POST', '/objects/contacts', text)).status, 400)
      assert.equal((await v1('POST', '/objects/contacts', `[${'['.repeat(500_000)}`)).status, 400)
    },
  },
  {
    name: 'a document of 900 KB of HTML, uploaded',
    kind: 'documents',
    async run({ v1 }) {
      const { body: made } = await v1('POST', '/knowledge/collections', { name: `Uploads ${randomUUID()}` })
      const path = `/knowledge/collections/${made.id}/documents`
      const { status } = await v1('POST', path, { title: 'Large', format: 'html', body: LARGE_HTML })
      assert.equal(status, 201)
    },
  },
  {
    name: 'a document of 900 KB of HTML, added by a node',
    kind: 'documents',
    async run(client) {
      const collection = `Nodes ${randomUUID()}`
      await client.v1('POST', '/knowledge/collections', { name: collection })
      const config = { collection, title: 'Large', format: 'html', body: '{{ inputs.html }}' }
      await tested(client, 'knowledge_add', config, { html: LARGE_HTML })
    },
  },
  {
    name: 'JSON of 900 KB that breaks at its end, and such with long numbers, in nodes',
    kind: 'json',
    async run(client) {
      const parse = (json: string, status: string) =>
        tested(client, 'parse_json', { text: '{{ inputs.json }}' }, { json }, status)
      await parse(`[${'1,'.repeat(450_000)}`, 'failed')
      await parse(`[${'1234567890123456789,'.repeat(40_000)}1]`, 'completed')
    },
  },
  {
    name: 'a feed of 1 MB, polled',
    kind: 'sources',
    async run({ app }) {
      const server = createServer((_, response) => response.end(LARGE_FEED))
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
      try {
        const source = { type: 'rss', url, existing: false }
        const made = await app('POST', '/webhooks/incoming', { name: 'Feed', source })
        assert.equal(made.status, 201, JSON.stringify(made.body))
        const path = `/webhooks/incoming/${made.body.id}`
        const { body } = await until(async () => {
          const now = await app('GET', path)
          return now.body.polled_at ? now : undefined
        }, 'the poll')
        assert.equal(body.poll_problem, null)
        await app('DELETE', path)
      } finally {
        server.close()
        server.closeAllConnections()
      }
    },
  },
  {
    name: 'code that never ends',
    kind: 'code',
    run: (client) => tested(client, 'code', { code: 'for (;;) {}' }, {}, 'failed'),
  },
  {
    name: 'CSV of 900 KB in a node',
    kind: 'csv',
    run: (client) =>
      tested(client, 'parse_csv', { text: '{{ inputs.csv }}' }, { csv: `a,b\n${'1,2\n'.repeat(9_000)}` }),
  },
  {
    name: 'a text with many parts, and a filter with many conditions',
    kind: 'lists',
    async run(client) {
      const config = { text: '{{ inputs.text }}', separator: 'a,b', max_parts: 10_000 }
      await tested(client, 'split_text', config, { text: 'a,b '.repeat(220_000) })
      const items = Array.from({ length: 10_000 }, (_, n) => ({ a: `k${n} `.repeat(5) }))
      const conditions = Array.from({ length: 20 }, () => ({
        field: 'a',
        operator: 'contains',
        right: 'z',
      }))
      await tested(client, 'filter_items', { items: '{{ inputs.items }}', conditions }, { items })
    },
  },
  {
    name: 'a query of analytics with all its dimensions',
    kind: 'analytics',
    async run({ v1 }) {
      const body = { metric: 'deals.won_value', group_by: ['owner_id'], interval: 'day', last: '365d' }
      assert.equal((await v1('POST', '/analytics/query', body)).status, 200)
    },
  },
]

const LARGE_FEED = `<rss><channel><title>Large</title>${`<item><title>a</title><description>${'&lt;b&gt;'.repeat(150)}</description></item>`.repeat(700)}</channel></rss>`
const LARGE_HTML = '<p>a</p> word <b>bold</b> '.repeat(34_000)

async function tested(
  { v1 }: Client,
  node_type: string,
  config: object,
  inputs: object,
  expected = 'completed',
): Promise<void> {
  const { status, body } = await v1('POST', '/workflows/nodes/test', {
    node_type,
    config,
    inputs,
    confirm: true,
  })
  assert.deepEqual([status, body.status], [200, expected], JSON.stringify(body).slice(0, 300))
}

/** A body for a webhook that maps automatically. */
function hooked(name: string, body: () => [text: string, contentType: string]): Attack {
  return {
    name,
    kind: 'mapping',
    async run({ hook }) {
      const { status } = await hook({ field_mapping: { mode: 'automatic' } }, ...body())
      assert.ok([200, 400, 422].includes(status), String(status))
    },
  }
}

function manyPlaceholders(): string {
  const fields = (node: number) =>
    Array.from(
      { length: 9 },
      (_, n) => `f${n}: "{{ inputs.a | upcase | default: nodes.n0.output.f${node % 9} }}"`,
    )
  return [
    'name: Many',
    'inputs: {a: string}',
    'nodes:',
    ...Array.from(
      { length: 400 },
      (_, n) => `  n${n + 1}: {type: set_fields, config: {fields: {${fields(n).join(', ')}}}}`,
    ),
  ]
    .join('\n')
    .replaceAll('nodes.n0.output', 'nodes.n1.output')
    .replace(/(n1: .*)/, (line) => line.replaceAll(/ \| default: nodes\.n1\.output\.f\d/g, ''))
}

function costlyNodes(count: number): string {
  return [
    'name: Costly',
    'inputs: {text: string}',
    'nodes:',
    ...Array.from(
      { length: count },
      (_, n) =>
        `  n${n}: {type: set_fields, config: {fields: {a: "{{ inputs.text | escape | url_encode | split: '%' | size }}"}}}`,
    ),
    `outputs: {a: "{{ nodes.n${count - 1}.output.a }}"}`,
  ].join('\n')
}

export const WARM_UP: Attack[] = [
  {
    name: 'a small request of each kind',
    kind: 'records',
    async run({ v1, hook }) {
      await v1('POST', '/workflows/validate', { spec: wideSwitch(3) })
      await hook({ field_mapping: { mode: 'automatic' } }, JSON.stringify({ email: 'ada@example.com' }))
      await v1('POST', '/workflows/nodes/test', {
        node_type: 'set_fields',
        config: { fields: { a: '{{ "now" | date: "%Y" }}' } },
        confirm: true,
      })
    },
  },
]
