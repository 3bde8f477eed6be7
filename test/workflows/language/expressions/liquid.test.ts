import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { render, renderTainted } from '../../../../workflows/language/expressions/liquid.ts'
import { references } from '../../../../workflows/language/expressions/references.ts'
import { NodeError } from '../../../../workflows/language/node-error.ts'
import { stepsOf } from '../../../support/steps.ts'

const scope = {
  inputs: { n: 5, text: 'Ada', none: null, list: [1, 2], object: { a: 1 }, evil: '{{ inputs.text }}' },
  nodes: { find: { output: { id: 'x', tags: ['vip'] } } },
  trigger: { big: 'x'.repeat(100_000) },
}
const fails = (template: string, reason: RegExp) =>
  throws(
    () => render(template, scope),
    (error: unknown) =>
      error instanceof NodeError && error.code === 'placeholder_error' && reason.test(error.message),
  )

describe('placeholders', () => {
  it('keep the type of a value that is one whole placeholder', () => {
    for (const value of [5, 'Ada', null, [1, 2], { a: 1 }]) {
      const name = Object.entries(scope.inputs).find(
        ([, held]) => held === value || JSON.stringify(held) === JSON.stringify(value),
      )![0]
      deepEqual(render(`{{ inputs.${name} }}`, scope), value)
    }
    equal(render('{{ inputs.n | plus: 1 }}', scope), 6)
    equal(render('{{ inputs.n > 4 }}', scope), true)
  })

  it('read a custom field without a value as null, and no other absent member', () => {
    const record = { custom_fields: { seats: 5 }, other: { a: 1 } }
    const read = (path: string) => render(`{{ trigger.record.${path} }}`, { trigger: { record } })
    equal(read('custom_fields.seats'), 5)
    equal(read('custom_fields.tier'), null)
    equal(read('custom_fields["tier"] | default: "none"'), 'none')
    throws(() => read('other.tier'), /undefined variable/)
  })

  it('are rendered as text inside a text', () => {
    equal(
      render('n={{ inputs.n }}, none={{ inputs.none }}, {{ inputs.object }}', scope),
      'n=5, none=, {"a":1}',
    )
  })

  it('fail where a whole segment of the path of a URL is empty: the URL would be another one', () => {
    const url = (text: string) => (render({ url: text }, scope) as { url: string }).url
    for (const path of ['/things/{{ inputs.none }}', '/{{ inputs.none }}/x', '/a/{{ inputs.none }}?q=1'])
      throws(
        () => url(`https://x.test${path}`),
        (error: unknown) =>
          error instanceof NodeError &&
          error.details?.path === '/url' &&
          /inputs\.none.*is empty, and the URL without it is another one/.test(error.message),
      )
    equal(url('https://x.test/a-{{ inputs.none }}/?q={{ inputs.none }}'), 'https://x.test/a-/?q=')
    equal(url('https://x.test/{{ inputs.n }}{{ inputs.none }}'), 'https://x.test/5')
    equal(url('https://x.test{{ inputs.none }}'), 'https://x.test')
    deepEqual(render({ fields: { url: 'https://x.test/{{ inputs.none }}' } }, scope), {
      fields: { url: 'https://x.test/' },
    })
  })

  it('leave out an association whose id is left out', () => {
    const associations = [
      { object: 'deals', id: '{{ nodes.find.output.id | omit_if_empty }}' },
      { object: 'contacts', id: '{{ inputs.none | omit_if_empty }}' },
    ]
    deepEqual(render({ fields: { associations } }, scope), {
      fields: { associations: [{ object: 'deals', id: 'x' }] },
    })
  })

  it('are rendered at every depth, but not in keys', () => {
    deepEqual(render({ '{{ k }}': [{ a: '{{ inputs.n }}' }], b: true }, scope), {
      '{{ k }}': [{ a: 5 }],
      b: true,
    })
  })

  it('are not rendered in rendered text', () => {
    equal(render('{{ inputs.evil }}', scope), '{{ inputs.text }}')
    equal(render('<{{ inputs.evil }}>', scope), '<{{ inputs.text }}>')
  })

  it('fail if a value is missing, unless a default filter follows', () => {
    fails('{{ inputs.nope }}', /undefined variable: inputs.nope/)
    equal(render('{{ inputs.nope | default: "x" }}', scope), 'x')
  })

  it('that read a secret fail with a message that does not depend on its value', () => {
    const secrets = { jwt: 'eyJhbGciOiJIUzI1NiJ9.x', list: 'a]b', pattern: '(', long: 'z'.repeat(8_000) }
    for (const template of [
      '{{ inputs.list | where: secrets.jwt }}',
      '{{ inputs.list | map: secrets.jwt }}',
      '{{ inputs.list | find: secrets.list, 1 }}',
      '{{ inputs.list | sum: secrets.jwt }}',
      '{{ inputs.list | group_by: secrets.jwt }}',
      '{{ inputs.list | sort: secrets.jwt }}',
      '{{ inputs.list | reject: secrets.jwt }}',
      '{{ inputs[secrets.jwt] }}',
      '{{ secrets.jwt.nope }}',
      '{{ secrets.jwt | divided_by: 0 }}',
      '{{ secrets.long | url_encode | times: 1 | date: secrets.long }}',
      'is {{ inputs.n }} and {{ secrets.long | date: secrets.long | append: inputs[secrets.jwt] }}',
    ]) {
      let failed: unknown
      try {
        renderTainted({ a: template }, { ...scope, secrets })
      } catch (error) {
        failed = error
      }
      if (!failed) continue
      ok(failed instanceof NodeError)
      const failing = template.match(/\{\{.*?\}\}/gs)!.at(-1)
      equal(
        failed.message,
        `${failing}: the placeholder cannot be rendered; it reads a secret, so the reason is not shown`,
      )
      deepEqual(failed.details, { path: '/a' })
    }
    throws(
      () => renderTainted('{{ inputs.nope }} {{ secrets.jwt }}', { ...scope, secrets }),
      /undefined variable: inputs.nope/,
    )
  })

  it('name the placeholder that fails, not those beside it', () => {
    throws(() => render('{{ inputs.n }}: {{ inputs.nope }} {{ inputs.text }}', scope), {
      message: /^\{\{ inputs\.nope \}\}: undefined variable/,
    })
  })

  it('lead a URL to no other path of its host', () => {
    const url = (text: string, id: string) =>
      render({ url: text }, { inputs: { id, base: 'https://x.test/a/../v1' } })
    for (const id of ['..', '.', '../po?x=1', 'a/../../po', '%2e%2e', '..\\po', '.\t.'])
      for (const text of ['https://x.test/echo/{{ inputs.id }}', 'https://x.test/echo/{{ inputs.id }}/lines'])
        throws(() => url(text, id), /inputs\.id.*leads the URL to another path/, `${text} ${id}`)
    throws(() => url('https://x.test/echo/.{{ inputs.id }}', '.'), /another path/)
    throws(() => url('{{ inputs.base }}/echo/{{ inputs.id }}', '..'), /another path/)
    throws(() => url('https://x.test/echo/{{ inputs.id | url_encode }}', '..'), /another path/)
    for (const [text, id] of [
      ['{{ inputs.id }}', 'https://x.test/a/../b'],
      ['{{ inputs.base }}/{{ inputs.id }}', '7'],
      ['https://x.test/../{{ inputs.id }}', 'a.b'],
      ['https://x.test/q?path={{ inputs.id }}', '../po'],
      ['https://x.test/{{ inputs.id }}', 'things?cursor=2'],
      ['https://x.test/{{ inputs.id }}.pdf', '...'],
    ] as const)
      equal(typeof (url(text, id) as { url: string }).url, 'string', text)
  })

  it('cannot read prototypes', () => {
    for (const path of [
      'nodes.constructor',
      'inputs.__proto__',
      'inputs.text.constructor',
      'inputs.list.push',
      'constructor',
      '__proto__',
    ])
      fails(`{{ ${path} }}`, /undefined variable/)
    deepEqual(render(JSON.parse('{"__proto__": "{{ inputs.n }}"}'), scope), JSON.parse('{"__proto__": 5}'))
    equal(({} as { n?: unknown }).n, undefined)
  })

  it('have no tags, no unlisted filters, and bounded loops and memory', () => {
    fails('{% for i in (1..9) %}x{% endfor %}', /tags such as/)
    fails('{% raw %}x{% endraw %}', /tags such as/)
    fails('{{ inputs.list | sample }}', /undefined filter/)
    fails('{{ (1..100000000) }}', /too expensive/)
    fails('{{ trigger.big | replace: "x", "many characters" }}', /too expensive/)
    fails('{{ "now" | date: "%9999999999d" }}', /pad to 100/)
    fails(`{{ a${'['.repeat(5000)} }}`, /nested too deeply/)
  })

  it('refuse what is too expensive before they compute it', async () => {
    const inputs = {
      format: '%Y-%m-%d '.repeat(1_000),
      text: 'a '.repeat(300_000),
      words: Array.from({ length: 50_000 }, (_, n) => `w${(n * 7919) % 50_021}`),
      deep: Array.from({ length: 1_000 }, () => Array.from({ length: 1_000 }, () => 'abc')),
      path: 'a.'.repeat(30_000),
    }
    const cases: [string, RegExp][] = [
      ['{{ "now" | date: inputs.format }}', /format of a date may have 200/],
      ['{{ "now" | date: inputs.words }}', /format of a date may have 200/],
      ['{{ inputs.text | replace: "a", inputs.text }}', /argument of replace may have 65536/],
      ['{{ inputs.words | sort_natural }}', /too expensive/],
      ['{{ inputs.words | where: "a" }}', /too expensive/],
      ['{{ inputs.words | map: inputs.path }}', /too expensive/],
      ['{{ inputs.deep | upcase }}', /too expensive/],
      ['{{ inputs.deep | join: "" }}', /too expensive/],
      [`{{ inputs.text ${'| upcase '.repeat(20)}}}`, /too expensive/],
      [`{{ inputs.text ${'| upcase '.repeat(51)}}}`, /50 filters at most/],
      ['{{ inputs.text contains "b" }}'.repeat(20), /too expensive/],
      ['{{ inputs.path }} {{ inputs.text }}'.repeat(20), /too large|too expensive/],
      ['{{ "now" | date: "%c%c%c%c%c%c%c%c%c%c%c%c" }}'.repeat(200), /too expensive/],
    ]
    for (const [text, message] of cases) {
      const steps = await stepsOf(() =>
        throws(() => render(text, { inputs }), { code: 'placeholder_error', message }),
      )
      ok(steps < 500_000, `${text.slice(0, 50)} took ${steps} steps`)
    }
  })

  it('share one limit among all placeholders of a value', () => {
    const text = 'a'.repeat(100_000)
    ok(render({ one: '{{ inputs.text | upcase }}' }, { inputs: { text } }))
    throws(() => render({ all: Array(10).fill('{{ inputs.text | upcase }}') }, { inputs: { text } }), {
      message: /too expensive/,
    })
  })

  it('stop within their time, also in the middle of one expression', () => {
    const items = Array.from({ length: 5_000 }, (_, n) => ({ a: `v${(n * 7919) % 50_000}` }))
    const text = `{{ inputs.items ${'| where: "a" '.repeat(4)}}}`
    throws(() => render(text, { inputs: { items } }, { milliseconds: 1 }), { message: /takes too long/ })
  })

  it('fail if the result is not finite', () => fails('{{ inputs.n | divided_by: 0 }}', /not finite/))

  it('report a missing operator between two values', () =>
    fails('{{ inputs.n inputs.text }}', /operator or a filter/))

  it('render dates in English and UTC, whatever the locale of the server', () => {
    equal(render('{{ "2026-03-01T23:30:00Z" | date: "%A %d %B %H:%M" }}', scope), 'Sunday 01 March 23:30')
  })

  it('never throw anything but a NodeError', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `{{ ${text} }}`),
          fc.string().map((text) => `{{ inputs.${text}`),
        ),
        (text) => {
          try {
            render(text, scope)
          } catch (error) {
            equal(error instanceof NodeError, true, String(error))
          }
        },
      ),
    )
  })

  it('list their references', () => {
    deepEqual(
      references(
        '{{ nodes[inputs.which].output | default: inputs.other }} {{ nodes["find"].output.tags[0] }}',
      ).map(({ path }) => path.join('.')),
      ['inputs.which', 'nodes', 'inputs.other', 'nodes.find.output.tags.0'],
    )
  })
})
