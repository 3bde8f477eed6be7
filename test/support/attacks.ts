import assert from 'node:assert/strict'
import type { Client } from './stack-client.ts'

/** One request or a few, whose computation the tenant chooses. Throws where it is not answered as it should be. */
export interface Attack {
  name: string
  run(client: Client): Promise<void>
}

/** A spec whose first node has so many cases, that all lead to other nodes, which meet in one. */
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
    async run({ v1 }) {
      const { status, body } = await v1('POST', '/workflows/validate', { spec: wideSwitch(400) })
      assert.equal(status, 200)
      assert.equal(body.valid, true, JSON.stringify(body).slice(0, 500))
    },
  },
  {
    name: 'a large pattern on a large text, in a mapping rule',
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
      // Nothing in it matches, so that all of it is read.
      const text = 'a'.repeat(131_000)
      const { status } = await hook(
        { field_mapping: { mode: 'manual', rules } },
        JSON.stringify({ email: 'ada@example.com', text }),
      )
      assert.ok([200, 400, 422].includes(status), String(status))
    },
  },
  {
    name: 'a date format of 900 KB, in a node test',
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
]

export const WARM_UP: Attack[] = [
  {
    name: 'a small request of each kind',
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
