import { deepEqual } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'

/** Texts that others write, where signs in them have a meaning: HTML, URLs and JSON. */

const HEAD = `name: Test
trigger: webhook
inputs:
  name: {type: string, default: x}
  n: {type: number, default: 1}
  kind: {type: string, enum: [a, b], default: a}
  list: {type: array, default: [{name: x}]}
nodes:
`
const found = (nodes: string) => {
  const { errors, warnings } = validateSpec(HEAD + nodes, catalogue).result
  return [...errors, ...warnings].map(({ code, path, hint }) => [code, path, hint])
}
const mail = (html: string, before = '') =>
  `${before}  m: {type: send_email, config: {to: a@example.com, subject: x, text: y, html: ${JSON.stringify(html)}}}\n`
const call = (config: object, before = '') =>
  `${before}  c: {type: api_request, config: ${JSON.stringify({ method: 'POST', ...config })}}\n`
const TEXT = (text: string, more = '') =>
  `  t: {type: render_text, config: {text: ${JSON.stringify(text)}${more}}}\n`
const FIELDS = (fields: object) => `  s: {type: set_fields, config: ${JSON.stringify({ fields })}}\n`

describe('texts of others', () => {
  it('are found in HTML, through nodes that copy them', () => {
    const escaped = (written: string) => `write \`{{ ${written} | escape }}\` instead of \`{{ ${written} }}\``
    const rows: [nodes: string, path: string, hint: string][] = [
      [mail('<p>{{ inputs.name }}</p>'), '/nodes/m/config/html', escaped('inputs.name')],
      [
        mail(
          '<ul>{{ nodes.t.output.text }}</ul>',
          TEXT('<li>{{ item.name }}</li>', ', items: "{{ inputs.list }}"'),
        ),
        '/nodes/t/config/text',
        escaped('item.name'),
      ],
      [
        mail('{{ nodes.t.output.text }}', TEXT('<b>{{ trigger.payload.name }}</b>')),
        '/nodes/t/config/text',
        escaped('trigger.payload.name'),
      ],
      [
        mail('<p>{{ nodes.t.output.text }}</p>', TEXT('Dear {{ inputs.name }}')),
        '/nodes/m/config/html',
        escaped('nodes.t.output.text'),
      ],
      [
        mail('<p>{{ nodes.s.output.who.name }}</p>', FIELDS({ who: { name: '{{ inputs.name }}' } })),
        '/nodes/m/config/html',
        escaped('nodes.s.output.who.name'),
      ],
      [
        mail(
          '<p>{{ nodes.t.output.text }}</p>',
          FIELDS({ row: '<li>{{ inputs.name }}</li>' }) + TEXT('<ul>{{ nodes.s.output.row }}</ul>'),
        ),
        '/nodes/s/config/fields/row',
        escaped('inputs.name'),
      ],
      [
        mail('<p>{{ inputs.n > 1 ? inputs.name : "none" }}</p>'),
        '/nodes/m/config/html',
        'write `{{ (inputs.n > 1 ? inputs.name : "none") | escape }}` instead of `{{ inputs.n > 1 ? inputs.name : "none" }}`',
      ],
    ]
    for (const [nodes, path, hint] of rows) deepEqual(found(nodes), [['unescaped_html', path, hint]], nodes)
    const twice = `${TEXT('<b>{{ inputs.name }}</b>')}${mail('{{ nodes.t.output.text }}')}${mail('{{ nodes.t.output.text }}').replace('  m:', '  n:')}`
    deepEqual(found(twice), [['unescaped_html', '/nodes/t/config/text', escaped('inputs.name')]])
  })

  it('are silent where HTML is safe', () => {
    for (const nodes of [
      mail('{{ nodes.t.output.text }}', TEXT('Dear {{ inputs.name }}')),
      mail('<p>{{ nodes.t.output.text | escape }}</p>', TEXT('Dear {{ inputs.name }}')),
      mail('<p>{{ nodes.t.output.text }}</p>', TEXT('<b>{{ inputs.name | escape }}</b> {{ inputs.n }}')),
      mail('<p>{{ nodes.t.output.count }}</p>', TEXT('<b>{{ inputs.name }}</b>')),
      mail('<p>{{ nodes.s.output.a }}</p>', FIELDS({ a: '{{ inputs.n }}', b: '{{ inputs.name }}' })) +
        `outputs: {x: "{{ nodes.s.output.b }}"}\n`,
    ])
      deepEqual(found(nodes), [], nodes)
  })

  it('are found in URLs, behind the host', () => {
    const encode = (written: string) =>
      `write \`{{ ${written} | url_encode }}\` instead of \`{{ ${written} }}\``
    const rows: [url: string, hint: string, before?: string][] = [
      ['https://x.test/echo/{{ inputs.name }}', encode('inputs.name')],
      ['https://x.test/echo?q={{ trigger.payload.q }}&limit=1', encode('trigger.payload.q')],
      ['https://x.test/{{ inputs.n }}?mail={{ trigger.record.email }}', encode('trigger.record.email')],
      ['https://{{ inputs.kind }}.x.test/{{ inputs.name }}', encode('inputs.name')],
      ['{{ env.base }}/{{ inputs.name }}', encode('inputs.name')],
      [
        'https://x.test/{{ nodes.s.output.a }}',
        encode('nodes.s.output.a'),
        FIELDS({ a: '{{ inputs.name }}' }),
      ],
      [
        'https://x.test/{{ inputs.n > 1 ? inputs.name : "none" }}',
        'write `{{ (inputs.n > 1 ? inputs.name : "none") | url_encode }}` instead of `{{ inputs.n > 1 ? inputs.name : "none" }}`',
      ],
    ]
    for (const [url, hint, before] of rows)
      deepEqual(found(call({ url }, before)), [['unencoded_url', '/nodes/c/config/url', hint]], url)
  })

  it('are silent where a URL is safe, or meant as a whole', () => {
    for (const [url, before] of [
      ['{{ inputs.name }}'],
      ['{{ trigger.payload.next }}'],
      ['https://x.test/{{ inputs.name | url_encode }}?q={{ inputs.name | slugify }}'],
      ['https://x.test/{{ inputs.n }}/{{ inputs.kind }}/{{ trigger.record.id }}/{{ run.id }}/{{ env.path }}'],
      ['https://x.test/{{ nodes.s.output.a }}', FIELDS({ a: '{{ inputs.name | url_encode }}' })],
    ])
      deepEqual(found(call({ url }, before)), [], url)
  })

  it('are found in JSON that is written as a text', () => {
    const rows: [body: string, hint: string][] = [
      ['{"name": "{{ inputs.name }}"}', 'write `{name: "{{ inputs.name }}"}`'],
      [
        '[{"to": "Dear {{ trigger.payload.name }}", "n": {{ inputs.n }}}]',
        'write `[{to: "Dear {{ trigger.payload.name }}", n: "{{ inputs.n }}"}]`',
      ],
      [
        '{"a": {{ inputs.name | json }}, "b": "{{ inputs.name | strip }}"}',
        'write `{a: "{{ inputs.name }}", b: "{{ inputs.name | strip }}"}`',
      ],
      ['{"name": {{ inputs.name }}}', 'write `{name: "{{ inputs.name }}"}`'],
    ]
    for (const [body, hint] of rows)
      deepEqual(
        found(call({ url: 'https://x.test/', body })),
        [['json_as_text', '/nodes/c/config/body', hint]],
        body,
      )
  })

  it('are silent where a body is safe, or no JSON', () => {
    for (const body of [
      { name: '{{ inputs.name }}' },
      '{"n": {{ inputs.n }}, "kind": "{{ inputs.kind }}", "run": "{{ run.id }}"}',
      '{"name": {{ inputs.name | json }}}',
      '{{ inputs.name }}',
      '[Note] {{ inputs.name }} said so',
      'name={{ inputs.name }}',
    ])
      deepEqual(found(call({ url: 'https://x.test/', body })), [], JSON.stringify(body))
  })
})
