import type { Family } from '../family.ts'

const PATHS = [
  'inputs.constructor',
  'inputs.constructor.constructor',
  'inputs.__proto__',
  'inputs.text.constructor',
  'inputs.list.constructor.prototype',
  'inputs["__proto__"]["polluted"]',
  'inputs["con" | append: "structor"]',
  'constructor',
  '__proto__',
  'this',
  'globalThis',
  'process.env',
  'process.env.SECRETS_KEY',
  'env.SECRETS_KEY',
  'env.DATABASE_URL',
  'org.constructor',
  'run.constructor',
  'nodes.constructor',
  'secrets',
  'secrets.acme_token',
  'secrets | json',
]

/** Templates that read what is not theirs, or compute too much. */
const TEMPLATES = [
  ...PATHS.map((path) => `{{ ${path} }}`),
  ...PATHS.map((path) => `{{ ${path} | json }}`),
  '{% include "/etc/passwd" %}',
  '{% render "/etc/passwd" %}',
  '{% layout "/etc/passwd" %}',
  '{% for i in (1..999999999) %}x{% endfor %}',
  '{% liquid echo "x" %}',
  '{{ (1..999999999) | join: "" }}',
  '{{ inputs.list | where_exp: "x", "x.constructor" }}',
  '{{ inputs.list | map: "constructor" | first | json }}',
  '{{ inputs.list | map: "__proto__" | first | json }}',
  '{{ inputs.list | where: "constructor" | json }}',
  '{{ inputs.text | replace: "", inputs.text }}',
  '{{ "now" | date: "%999999999d" }}',
  '{{ inputs.evil }}',
  '{{ inputs.text | raw }}',
  '{{ "/etc/passwd" | read }}',
]

/** What no result may have. */
const LEAKED = /root:.*:0:0|\[native code\]|a-value-of-a-secret|postgres(?:ql)?:\/\//

export const templates: Family = {
  name: 'templates',
  title: 'placeholders that read what is not theirs',
  async run({ send, attacker, victim }, tally) {
    for (const { key } of [attacker, victim])
      for (const template of TEMPLATES) {
        const { status, text } = await send(
          'POST',
          '/v1/workflows/nodes/test',
          { Authorization: `Bearer ${key}` },
          {
            node_type: 'set_fields',
            config: { fields: { a: template } },
            inputs: { text: 'x', list: [{ a: 1 }], evil: '{{ env.SECRETS_KEY }}' },
            confirm: true,
          },
        )
        const { output } = status === 200 ? JSON.parse(text) : { output: null }
        tally.attempt(status < 500 && !LEAKED.test(text), `${template}: ${status} ${text.slice(0, 300)}`)
        const value = output?.a ?? null
        const harmless =
          value === null ||
          typeof value !== 'object' ||
          /^(?:\[\]|\{\}|\[null\])$/.test(JSON.stringify(value))
        tally.attempt(harmless, `${template} gave ${JSON.stringify(value)}`)
      }
  },
}
