import { deepEqual, equal, match, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { render } from '../../../workflows/expressions/liquid.ts'
import { references } from '../../../workflows/expressions/references.ts'
import { NodeError } from '../../../workflows/nodes/define.ts'

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

  it('are rendered as text inside a text', () => {
    equal(
      render('n={{ inputs.n }}, none={{ inputs.none }}, {{ inputs.object }}', scope),
      'n=5, none=, {"a":1}',
    )
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
    fails('{{ (1..100000000) }}', /too large/)
    fails('{{ trigger.big | replace: "x", trigger.big }}', /too large/)
    fails('{{ "now" | date: "%9999999999d" }}', /too large/)
    fails(`{{ a${'['.repeat(5000)} }}`, /nested too deeply/)
  })

  it('stop at the time limit, also inside one expression', () => {
    const items = Array.from({ length: 50_000 }, (_, n) => ({ a: `v${(n * 7919) % 50_000}` }))
    const costly = [
      `{{ inputs.items ${'| where: "a" '.repeat(60)}}}`,
      '{{ inputs.items | size }}'.repeat(2_000),
    ]
    for (const text of costly) {
      const started = Date.now()
      try {
        render(text, { inputs: { items } }, { milliseconds: 50 })
      } catch (error) {
        match((error as Error).message, /takes too long/)
      }
      ok(Date.now() - started < 1_000, `it took ${Date.now() - started} ms`)
    }
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
