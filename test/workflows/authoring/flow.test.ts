import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { compile } from '../../../workflows/authoring/compile.ts'
import { flowOf as edgesOf } from '../../../workflows/authoring/flow.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'
import { stepsOf } from '../../support/steps.ts'

const catalogue = { entities: {}, metrics: [], checkAnalytics: () => [], eventData: () => undefined }

const TYPES: Record<string, string> = {
  set: '{type: emit_event, config: {event: x.y}',
  if: '{type: condition, config: {conditions: [{left: "{{ run.id }}", operator: eq, right: x}]}',
  call: '{type: api_request, config: {url: "https://x.test"}, retry: {max_attempts: 2}',
  stop: '{type: stop',
}

/** A spec from lines such as `a set next: b`: an id, a type of `TYPES`, other members. */
function specOf(...lines: string[]): string {
  const nodes = lines.map((line) => {
    const [, id, type, rest] = /^(\w+) (\w+) ?(.*)$/.exec(line)!
    return `  ${id}: ${TYPES[type!]}${rest ? `, ${rest}` : ''}}`
  })
  return `name: Test\nnodes:\n${nodes.join('\n')}\n`
}

function flowOf(...lines: string[]) {
  const { result, definition } = validateSpec(specOf(...lines), catalogue)
  return {
    edges: (definition?.edges ?? []).map(({ from, handle, to }) => `${from}:${handle}>${to}`),
    errors: result.errors.map(({ code }) => code),
    warnings: result.warnings,
    program: definition && compile(definition),
  }
}

describe('the rule of `next`', () => {
  it('a node without `next` flows to the one written after it', () => {
    const { edges, warnings } = flowOf('a set', 'b call', 'c set')
    deepEqual(edges, ['a:success>b', 'b:success>c'])
    deepEqual(warnings, [])
  })

  it('it does not flow into a node that some `next` names: both branches of a condition never run', () => {
    const { edges, warnings } = flowOf('a if next: {"true": b, "false": c}', 'b set', 'c set')
    deepEqual(edges, ['a:true>b', 'a:false>c'])
    deepEqual(warnings, [], 'nothing follows: there is no doubt')
  })

  it('nor into the target of an error handle, or of a node that is written later', () => {
    const failing = flowOf('a call next: {success: b, error: c}', 'b set', 'c set')
    deepEqual([failing.edges, failing.warnings], [['a:success>b', 'a:error>c'], []])
    const { edges } = flowOf('a set next: [b, d]', 'b set', 'c set', 'd set next: c')
    deepEqual(edges, ['a:success>b', 'a:success>d', 'd:success>c'])
  })

  const doubtful: [what: string, lines: string[], node: string, to: string][] = [
    [
      'the last of two branches flows on',
      ['a if next: {"true": b, "false": c}', 'b set', 'c set', 'd set'],
      'b',
      'd',
    ],
    [
      'it does so by a `next`',
      ['a if next: {"true": b, "false": c}', 'b set', 'c set next: d', 'd set'],
      'b',
      'd',
    ],
    ['a parallel branch flows on', ['a set next: [b, c]', 'b set', 'c set', 'd set'], 'b', 'd'],
    [
      'another branch names the node that follows',
      ['a set next: [b, c]', 'b set next: d', 'c set', 'd set'],
      'c',
      'd',
    ],
    [
      'the path after an error flows on',
      ['a call next: {success: b, error: c}', 'b set', 'c set', 'd set'],
      'b',
      'd',
    ],
  ]
  for (const [what, lines, node, to] of doubtful)
    it(`warns of a branch that ends where ${what}, with the line to write`, () => {
      const { errors, warnings, program } = flowOf(...lines)
      deepEqual(errors, [])
      deepEqual(
        warnings.map(({ code, node_id, path, line, column }) => [code, node_id, path, line, column]),
        [['implicit_end', node, `/nodes/${node}`, 3 + lines.findIndex((one) => one.startsWith(node)), 3]],
      )
      equal(program?.nodes[node]?.next.success, undefined)
      const [, next, writers] = /write `(next: \w+)` in (.*?);/.exec(warnings[0]!.hint!) ?? []
      equal(next, `next: ${to}`)
      const written = (text: string, ids: string[]) =>
        lines.map((line) => (ids.includes(line.split(' ')[0]!) ? `${line} ${text}` : line))
      const joined = flowOf(...written(next!, writers!.split(' and in ')))
      deepEqual([joined.errors, joined.warnings], [[], []], 'the hint settles it in one round')
      ok(joined.edges.includes(`${node}:success>${to}`))
      const ended = flowOf(...written('next: end', [node]))
      deepEqual([ended.warnings, ended.program], [[], program], '`next: end` says the same')
    })

  it('warns of each branch but the last', () => {
    const { warnings } = flowOf('a set next: [b, c, d]', 'b set', 'c set', 'd set', 'e set')
    deepEqual(
      warnings.map(({ node_id, hint }) => [node_id, hint?.match(/`next: \w+` in [^;]+/)?.[0]]),
      [
        ['b', '`next: e` in b and in d'],
        ['c', '`next: e` in c and in d'],
      ],
    )
  })

  it('does not warn where no branch flows on: after an end, a stop, or several ways', () => {
    for (const lines of [
      ['a if next: {"true": b, "false": c}', 'b set', 'c stop'],
      ['a if next: {"true": b, "false": c}', 'b set', 'c set next: end'],
      ['a if next: {"true": b, "false": c}', 'b stop', 'c set', 'd set'],
      ['a call next: {success: b, error: d}', 'b call next: {success: c, error: d}', 'c set', 'd stop'],
      ['a if next: {"true": b, "false": c}', 'b set', 'c if next: {"true": d, "false": e}', 'd set', 'e set'],
      ['a if next: {"true": b, "false": d}', 'b set', 'c set next: end', 'd set'],
    ]) {
      const { errors, warnings } = flowOf(...lines)
      deepEqual([errors, warnings], [[], []], lines.join(' | '))
    }
  })

  it('a node that only the rule makes unreachable is reported as such', () => {
    const { errors } = flowOf('a set', 'b set', 'c set next: b')
    ok(errors.includes('unreachable_node'), errors.join())
  })

  it('takes a few steps for each edge of 500 nodes that name each other thousands of times', async () => {
    const ids = Array.from({ length: 500 }, (_, at) => `n${at}`)
    const node = { type: 'set_fields', config: {} }
    const nodes = ids.map((id, at) => [id, at < 15 ? { ...node, next: ids.slice(15) } : node])
    const spec = { nodes: Object.fromEntries(nodes) }
    const edges = 15 * 485
    equal(edgesOf(spec).places.size, edges)
    const steps = await stepsOf(() => edgesOf(spec))
    ok(steps < 20 * edges, `${steps} steps`)
  })

  it('a `when` without a placeholder gets the text to write', () => {
    const { result } = validateSpec('name: T\nnodes:\n  a: {type: stop, when: inputs.x == 1}\n', catalogue)
    const error = result.errors.find(({ path }) => path === '/nodes/a/when')
    deepEqual([error?.code, error?.line], ['placeholder_syntax', 3])
    match(String(error!.hint), /"\{\{ inputs\.x == 1 \}\}"/)
    for (const when of ['"{{ run.id == nil }}"', 'true', 'false']) {
      const text = `name: T\nnodes:\n  a: {type: stop, when: ${when}}\n`
      deepEqual(validateSpec(text, catalogue).result.warnings, [])
    }
  })
})
