import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { parse } from 'yaml'
import { catalogue } from '../../../../api/v1/catalogue.ts'
import { compile } from '../../../../workflows/authoring/compile.ts'
import { EXAMPLES, EXPRESSIONS } from '../../../../workflows/authoring/guide/examples.ts'
import {
  asMarkdown,
  authoringGuide,
  MAX_BYTES,
  topicsOf,
} from '../../../../workflows/authoring/guide/index.ts'
import { validateSpec } from '../../../../workflows/authoring/validate.ts'
import { FILTERS } from '../../../../workflows/language/expressions/filters.ts'
import { render } from '../../../../workflows/language/expressions/liquid.ts'
import { flowText } from '../../../../workflows/language/repair.ts'
import { findNodeType, nodeTypes } from '../../../../workflows/nodes/index.ts'

const { version, ...brief } = authoringGuide(catalogue)
const guide = asMarkdown(brief)
const full = authoringGuide(catalogue, { detail: 'full' })
const { examples } = full

const findings = (spec: string) => {
  const { result } = validateSpec(spec, catalogue)
  return [...result.errors, ...result.warnings].map(({ code, line, message }) => `${code} ${line} ${message}`)
}

describe('the authoring guide', () => {
  it('has at most 30 KB, with every node type, kind and field, filter and key of the spec', () => {
    ok(Buffer.byteLength(guide) <= MAX_BYTES, `${Buffer.byteLength(guide)} bytes`)
    for (const type of Object.keys(nodeTypes)) ok(guide.includes(`### ${type}\n`), type)
    for (const [entity, { writable, backdated }] of Object.entries(catalogue.entities)) {
      ok(guide.includes(`**${entity}**`), entity)
      // Times of the past are for migrations: only the topic of the kind has them.
      const { guide: topic } = authoringGuide(catalogue, { topic: entity })
      for (const field of writable) ok((backdated.includes(field) ? topic : guide).includes(field), field)
    }
    for (const filter of FILTERS) ok(guide.includes(filter), filter)
    const { guide: metrics } = authoringGuide(catalogue, { topic: 'metrics' })
    for (const { name, dimensions } of catalogue.metrics) {
      const [table, what] = name.split('.')
      const [line] = new RegExp(`^- \\*\\*${table}\\.\\*\\* .*$`, 'm').exec(guide) ?? ['']
      ok(line.match(/\w+/g)?.includes(what!), name)
      const [about] = new RegExp(`^- .${name}. .*$`, 'm').exec(metrics) ?? ['']
      for (const dimension of dimensions) ok(about.includes(dimension.name), `${name} ${dimension.name}`)
    }
    for (const key of [
      'inputs',
      'settings',
      'error_workflow',
      'concurrency',
      'max_attempts',
      'on_error',
      'join',
    ])
      ok(guide.includes(key), key)
  })

  it('has specs that are valid, without a warning', () => {
    const specs = [guide, asMarkdown(full)].flatMap((text) =>
      [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, spec]) => spec!),
    )
    ok(specs.length >= EXAMPLES.length + 4)
    for (const spec of specs) deepEqual(findings(spec), [], spec)
    deepEqual(examples, EXAMPLES)
    for (const { spec } of examples) equal(brief.guide.includes(spec) || full.guide.includes(spec), false)
    for (const { spec } of examples) ok(compile(validateSpec(spec, catalogue).definition!))
  })

  it('has an example of each node type that validates as a node of a spec', () => {
    const written = Object.keys(nodeTypes).map(
      (topic) => /^`(\{type: .*\})`$/m.exec(authoringGuide(catalogue, { topic }).guide)![1]!,
    )
    const shown = [...guide.matchAll(/^`(\{type: .*\})`$/gm)].map(([, node]) => node!)
    ok(shown.length > written.length / 2 && shown.every((node) => written.includes(node)))
    for (const node of written) {
      const { type } = parse(node) as { type: string }
      const { inputs = {}, nodes = {} } = (findNodeType(type)!.example.inputs ?? {}) as Record<string, object>
      const before = Object.entries(nodes).map(
        ([id, { output = {} }]) => `  ${id}: ${flowText({ type: 'set_fields', config: { fields: output } })}`,
      )
      // A loop needs a body.
      const after = findNodeType(type)!.body ? '  body: {type: stop}\n' : ''
      const declared = Object.keys(inputs).map((name) => `${name}: any`)
      const spec = `name: Test\ntrigger: webhook\ninputs: {${declared.join(', ')}}\nnodes:\n${before.join('\n')}\n  example: ${node}\n${after}`
      deepEqual(validateSpec(spec, catalogue).result.errors, [], spec)
    }
  })

  it('has triggers and members of nodes that validate', () => {
    const triggers = [...guide.matchAll(/`(trigger: [^`]+)`/g)].map(([, text]) => text!)
    ok(triggers.length >= 4)
    for (const trigger of triggers) deepEqual(findings(`name: T\n${trigger}\nnodes: {a: {type: stop}}\n`), [])
    const [, retry] = /`(retry: \{[^`]+)`/.exec(guide)!
    const call = `{type: api_request, config: {url: "https://x.test"}, ${retry}}`
    deepEqual(findings(`name: T\nnodes: {a: ${call}}\n`), [])
  })

  it('has the values of settings, and the members of outputs', () => {
    const about = (type: string) => guide.split(`### ${type}\n`)[1]!.split('\n### ')[0]!
    match(
      about('crm_manager'),
      /search \{entity, .*order\?: asc\|desc, limit\?: 1–200, .*all\?: bool, max\?: 1–10000\}/,
    )
    match(about('for_each'), /concurrency\?: 1–50, on_item_error\?: stop\|continue/)
    match(
      about('for_each'),
      /results: \[\], items: \[\{index, status: completed\|failed\|cancelled, output, item, error\}\]/,
    )
    match(about('aggregate_items'), /missing\?: fail\|zero\} → .*groups: \[\{group, count, values\}\]/)
    match(about('parse_csv'), /delimiter\?: ","\|";"\|"\\t"\|"\|"/)
  })

  it('says what each expression of its table gives', () => {
    for (const { text, scope, result } of EXPRESSIONS) deepEqual(render(text, scope), result, text)
  })

  it('tells more of one topic, node type or kind', () => {
    for (const topic of topicsOf(catalogue)) {
      const more = authoringGuide(catalogue, { topic }).guide
      const less = authoringGuide(catalogue, { topic, detail: 'standard' }).guide
      ok(less.length > 40 && more.length >= less.length, topic)
    }
    ok(authoringGuide(catalogue, { topic: 'delay' }).guide.includes('Config schema:'))
    ok(full.guide.length > guide.length)
    equal(full.version, version)
  })
})
