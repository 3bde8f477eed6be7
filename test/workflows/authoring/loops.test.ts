import { deepEqual, equal, match } from 'node:assert/strict'
import { compile } from '../../../workflows/authoring/compile.ts'
import { validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'

const catalogue = { entities: {}, metrics: [], checkAnalytics: () => [], eventData: () => undefined }
const spec = (nodes: string, rest = 'inputs: {list: {type: array, required: true}, name: string}') =>
  `name: Test\nnodes:\n${nodes}\n${rest}`
const set = (id: string, value = '1', more = '') =>
  `  ${id}: {type: set_fields, config: {fields: {x: ${JSON.stringify(value)}}}${more}}`
const each = (next: string, config = 'items: "{{ inputs.list }}"', id = 'each') =>
  `  ${id}: {type: for_each, config: {${config}}${next && `, next: ${next}`}}`
/** The findings, without those about the purpose of the last nodes. */
const found = (text: string) => {
  const { errors, warnings } = validateSpec(text, catalogue).result
  const others = warnings.filter(({ node_id }) => !/^(b|c|last)$/.test(node_id ?? ''))
  return [...errors, ...others].map(({ code, line, hint }) => [code, line, hint ?? ''])
}

describe('a loop in a definition', () => {
  const valid: Record<string, string> = {
    'a body of several nodes, and what comes after it': spec(
      [
        each('{item: a, done: c}'),
        set('a', '{{ item.email }} {{ index }}'),
        set('b', '{{ nodes.a.output.x }} of {{ nodes.each.output.count }}'),
        set('c', '{{ nodes.each.output.items | map: "output" }} {{ nodes.each.output.failed }}'),
      ].join('\n'),
    ),
    'a body that is simply written after the loop': spec([each(''), set('a', '{{ item }}')].join('\n')),
    'a result that its body renders': spec(
      [
        each('{item: a, done: b}', 'items: [1], output: {x: "{{ nodes.a.output.x }}", of: "{{ item }}"}'),
        set('a'),
        set('b', '{{ nodes.each.output.items }}'),
      ].join('\n'),
      'outputs: {all: "{{ nodes.each.output.items }}"}',
    ),
    'a loop in a loop, whose body reads both items': spec(
      [
        each('{item: inner, done: last}'),
        each('{item: a, done: b}', 'items: "{{ item.lines }}"', 'inner'),
        set('a', '{{ item }} {{ nodes.each.output.item.name }} {{ nodes.each.output.index }}'),
        set('b', '{{ item }} {{ nodes.inner.output.items }}'),
        set('last', '{{ nodes.each.output.items }}'),
      ].join('\n'),
    ),
    'branches that join in the body': spec(
      [
        each('{item: [a, b]}'),
        set('a', '1', ', next: c'),
        set('b', '1', ', next: c'),
        set('c', '{{ nodes.a.output.x }}{{ nodes.b.output.x }}', ', join: all'),
      ].join('\n'),
    ),
    'what comes after it reads what came before it': spec(
      [
        set('first'),
        each('{item: a, done: b}'),
        set('a', '{{ nodes.first.output.x }}'),
        set('b', '{{ nodes.first.output.x }}'),
      ].join('\n'),
    ),
  }
  for (const [name, text] of Object.entries(valid)) it(`may have ${name}`, () => deepEqual(found(text), []))

  const wrong: [name: string, text: string, code: string, line: number, hint: RegExp][] = [
    ['no body', spec([each('{done: a}'), set('a')].join('\n')), 'loop_body', 3, /item: <the first node/],
    [
      'a body that flows into what comes after it',
      spec([each('{item: a, done: b}'), set('a', '1', ', next: b'), set('b')].join('\n')),
      'loop_body',
      4,
      /^write `end`$/,
    ],
    [
      'a body that is entered from outside',
      spec([set('start', '1', ', next: [each, a]'), each('{item: a}'), set('a')].join('\n')),
      'loop_body',
      4,
      /leave a to each/,
    ],
    [
      'a body that leads back to it',
      spec([each('{item: a}'), set('a', '1', ', next: each')].join('\n')),
      'cycle',
      3,
      /`next: end`/,
    ],
    [
      'item outside of a body',
      spec([each('{item: a, done: b}'), set('a'), set('b', '{{ item }}')].join('\n')),
      'root_not_available',
      5,
      /nodes\.<loop>\.output\.items/,
    ],
    [
      'index in its own list',
      spec([each('', 'items: ["{{ index }}"]'), set('a')].join('\n')),
      'root_not_available',
      3,
      /body/,
    ],
    [
      'item in the outputs',
      spec([each('', 'items: [1]'), set('a')].join('\n'), 'outputs: {x: "{{ item }}"}'),
      'root_not_available',
      5,
      /body/,
    ],
    [
      'a node of the body read after it',
      spec([each('{item: a, done: b}'), set('a'), set('b', '{{ nodes.a.output.x }}')].join('\n')),
      'not_upstream',
      5,
      /^nodes\.each\.output\.items$/,
    ],
    [
      'a node of the body read by the outputs',
      spec([each('', 'items: [1]'), set('a')].join('\n'), 'outputs: {x: "{{ nodes.a.output.x }}"}'),
      'not_upstream',
      5,
      /^nodes\.each\.output\.items$/,
    ],
    [
      'its own output as its list',
      spec([each('', 'items: "{{ nodes.each.output.items }}"'), set('a')].join('\n')),
      'not_upstream',
      3,
      /^no node is before it/,
    ],
    [
      'an unknown field of the item that is processed',
      spec([each(''), set('a', '{{ nodes.each.output.items }}')].join('\n')),
      'unknown_field',
      4,
      /item/,
    ],
    [
      'the item read outside of its body',
      spec([each('{item: a, done: b}'), set('a'), set('b', '{{ nodes.each.output.item }}')].join('\n')),
      'unknown_field',
      5,
      /items/,
    ],
    [
      'a list of text',
      spec([each('', 'items: "{{ inputs.name }}"'), set('a')].join('\n')),
      'type_mismatch',
      3,
      /^$/,
    ],
    [
      'too much at a time',
      spec([each('', 'items: [1], concurrency: 51'), set('a')].join('\n')),
      'invalid_config',
      3,
      /^$/,
    ],
  ]
  for (const [name, text, code, line, hint] of wrong)
    it(`may not have ${name}`, () => {
      const [first] = found(text)
      deepEqual(first?.slice(0, 2), [code, line], JSON.stringify(found(text)))
      match(String(first?.[2]), hint)
    })

  it('may not be in more than five loops', () => {
    const nodes = Array.from({ length: 6 }, (_, n) =>
      each(`{item: ${n < 5 ? `l${n + 1}` : 'last'}}`, 'items: [1]', `l${n}`),
    )
    deepEqual(
      found(spec([...nodes, set('last')].join('\n'))).map(([code, line]) => [code, line]),
      [['loop_body', 8]],
    )
  })

  it('may be one of fifty at most', () => {
    const nodes = Array.from({ length: 51 }, (_, n) =>
      each(`{item: b${n}, done: ${n < 50 ? `l${n + 1}` : 'end'}}`, 'items: [1]', `l${n}`),
    )
    const bodies = nodes.map((_, n) => set(`b${n}`))
    const first = found(spec([...nodes, ...bodies].join('\n')))[0]
    deepEqual(first?.slice(0, 2), ['loop_body', 53])
  })

  it('is compiled with the bodies that nodes are in, and whether something reads its results', () => {
    const text = spec(
      [
        each('{item: inner, done: b}'),
        each('{item: a}', 'items: [1]', 'inner'),
        set('a'),
        set('b', '{{ nodes.each.output.count }}'),
      ].join('\n'),
      'inputs: {list: {type: array, required: true}}\noutputs: {x: "{{ nodes.each.output }}"}',
    )
    const { definition } = validateSpec(text, catalogue)
    const { nodes, engine } = compile(definition!)
    deepEqual(
      Object.values(nodes).map(({ id, loop, collects }) => [id, loop, collects]),
      [
        ['each', undefined, true],
        ['inner', 'each', false],
        ['a', 'inner', undefined],
        ['b', undefined, undefined],
      ],
    )
    equal(engine, 3)
  })

  it('is checked in a raw definition too', () => {
    const { result } = validateDefinition(
      {
        name: 'Test',
        nodes: [
          { id: 'each', type: 'for_each', config: { items: [1] } },
          { id: 'a', type: 'set_fields', config: { fields: {} } },
          { id: 'b', type: 'set_fields', config: { fields: {} } },
        ],
        edges: [
          { from: 'each', handle: 'item', to: 'a' },
          { from: 'each', handle: 'done', to: 'b' },
          { from: 'a', handle: 'success', to: 'b' },
        ],
      },
      catalogue,
    )
    deepEqual(
      result.errors.map(({ code, path }) => [code, path]),
      [['loop_body', '/edges/2']],
    )
  })
})
