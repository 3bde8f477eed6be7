import { deepEqual, equal, ok } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { catalogue } from '../../../../api/v1/catalogue.ts'
import { compile } from '../../../../workflows/authoring/compile.ts'
import { lowerSpec } from '../../../../workflows/authoring/lower.ts'
import { parseYaml } from '../../../../workflows/authoring/parse.ts'
import { specSchema } from '../../../../workflows/authoring/schema.ts'
import { validateDefinition } from '../../../../workflows/authoring/validate.ts'
import { writeSpec } from '../../../../workflows/authoring/write/write-spec.ts'
import type { Definition, Program } from '../../../../workflows/language/definition.ts'
import { isStorable } from '../../../../workflows/shared/storable-text.ts'
import { readTemplates } from '../../../../workflows/templates/index.ts'

const FIXTURES = new URL('../../../fixtures/specs/', import.meta.url)
const fixtures = ['valid', 'warned'].flatMap((kind) =>
  readdirSync(new URL(`${kind}/`, FIXTURES)).map((name) => ({
    name,
    text: readFileSync(new URL(`${kind}/${name}`, FIXTURES), 'utf8'),
  })),
)
const specs = [...fixtures, ...readTemplates().map(({ name, spec }) => ({ name, text: spec }))]

const definitionOf = (text: string): Definition =>
  lowerSpec(specSchema.parse(parseYaml(text).value)).definition

/** Without the order of handles and incoming edges, which has no meaning. */
function meaning(definition: Definition): Program {
  const program = compile(definition)
  const nodes = Object.entries(program.nodes).map(([id, node]) => [
    id,
    {
      ...node,
      next: Object.fromEntries(Object.entries(node.next).sort(([a], [b]) => (a < b ? -1 : 1))),
      incoming: node.incoming.toSorted(),
    },
  ])
  return { ...program, nodes: Object.fromEntries(nodes) }
}

function equalMeaning(text: string | undefined, definition: Definition, name?: string): void {
  ok(text !== undefined, name)
  const read = definitionOf(text)
  deepEqual(meaning(read), meaning(definition), `${name}\n${text}`)
  const nodes = (one: Definition) => one.nodes.map(({ config }) => JSON.stringify(config))
  deepEqual(nodes(read), nodes(definition), 'in the same order')
}

const COMMENTED = `# Who says hello
name: Greet # the name

trigger: manual
inputs: {email: {type: string, required: true}} # who
nodes:
  # finds or creates the contact
  save:
    type: crm_manager # records
    config:
      operation: upsert
      entity: contacts
      by: email # unique
      fields: {email: "{{ inputs.email }}", first_name: 'Ada'}
    # a note below save

  # says hello
  say:
    type: set_fields
    config: {fields: {note: hello, id: "{{ nodes.save.output.record.id }}"}} # one line
  # the end
  done: {type: stop, config: {message: |-
    bye}}
# what comes out
outputs:
  note: "{{ nodes.say.output.note }}"
# last line
`.replace('config: {message: |-\n    bye}}', 'config: {message: bye}}')

describe('writing YAML from a definition', () => {
  it('keeps the meaning of every valid spec of the fixtures and templates', () => {
    for (const { name, text } of specs) {
      const definition = definitionOf(text)
      equalMeaning(writeSpec(definition), definition, name)
    }
  })

  it('keeps the text of an earlier version if nothing changed, byte for byte', () => {
    for (const { name, text } of [...specs, { name: 'commented', text: COMMENTED }])
      equal(writeSpec(definitionOf(text), text), text.endsWith('\n') ? text : `${text}\n`, name)
  })

  it('changes only the lines of what changed, and keeps the comments around them', () => {
    const definition = definitionOf(COMMENTED)
    const change = (edit: (definition: Definition) => void) => {
      const copy = structuredClone(definition)
      edit(copy)
      const text = writeSpec(copy, COMMENTED)
      equalMeaning(text, copy)
      return text
    }
    equal(
      change(({ nodes }) => {
        nodes[1]!.config = { fields: { ...(nodes[1]!.config.fields as object), note: 'hi, you' } }
      }),
      COMMENTED.replace('note: hello', 'note: "hi, you"'),
    )
    equal(
      change(({ nodes }) => {
        nodes[0]!.title = 'Save it'
        nodes[0]!.config.entity = 'companies'
        nodes[0]!.config.by = 'domain'
      }),
      COMMENTED.replace('entity: contacts', 'entity: companies')
        .replace('by: email', 'by: domain')
        .replace('type: crm_manager # records\n', 'type: crm_manager # records\n    title: Save it\n'),
    )
    equal(
      change((copy) => {
        copy.nodes.splice(1, 1)
        copy.edges = [{ from: 'save', handle: 'success', to: 'done' }]
        copy.outputs = {}
      }),
      COMMENTED.replace(/\n {2}# says hello\n(?: {2,}.*\n)*(?= {2}# the end)/, '')
        .replace(/# what comes out\noutputs:\n.*\n/, '')
        .replace('    # a note below save\n', '    # a note below save\n'),
    )
    equal(
      change((copy) => {
        copy.nodes.splice(2, 0, { id: 'log', type: 'set_fields', config: { fields: { a: 1 } } })
        copy.edges[1] = { from: 'say', handle: 'success', to: 'log' }
        copy.edges.push({ from: 'log', handle: 'success', to: 'done' })
      }),
      COMMENTED.replace(
        '  # the end\n',
        '  log:\n    type: set_fields\n    config:\n      fields:\n        a: 1\n  # the end\n',
      ),
    )
  })

  it('keeps the meaning of any definition, and the comments of the nodes that remain', () => {
    fc.assert(
      fc.property(graphs, graphs, (before, after) => {
        const base = commented(writeSpec(before)!)
        equalMeaning(base, before, 'the base')
        const text = writeSpec(after, base)
        equalMeaning(text, after, base)
        const ids = new Set(after.nodes.map(({ id }) => id))
        for (const { id } of before.nodes)
          equal(text!.includes(`# about ${id}\n`), ids.has(id), `${id}: ${base}\n${text}`)
      }),
      { numRuns: 150 },
    )
  })

  it('writes texts that YAML would read otherwise', () => {
    fc.assert(
      fc.property(texts, texts, (one, other) => {
        const definition = (value: unknown): Definition => ({
          ...EMPTY,
          nodes: [{ id: 'a', type: 'set_fields', config: { fields: { value, list: [value, { value }] } } }],
        })
        const text = writeSpec(definition(one))
        equalMeaning(text, definition(one))
        const flow = text!.replace(
          /fields:[\s\S]*/,
          `fields: {value: x, list: [y, {value: z}]} # as a list\n`,
        )
        const changed = writeSpec(definition(other), flow)
        equalMeaning(changed, definition(other))
        ok(changed!.includes('# as a list') || other.includes('\n'), changed)
      }),
    )
  })

  it('writes nothing for a definition that is larger than a spec may be', () => {
    const nodes = Array.from({ length: 2_000 }, (_, i) => ({
      id: `n${i}`,
      type: 'set_fields',
      config: { fields: { text: 'x'.repeat(100) } },
    }))
    const edges = nodes.slice(1).map(({ id }, i) => ({ from: `n${i}`, handle: 'success', to: id }))
    const definition = { ...EMPTY, nodes, edges }
    const { result } = validateDefinition(definition, catalogue)
    deepEqual([result.errors, writeSpec(definition)], [[], undefined])
  })
})

const EMPTY = {
  name: 'Any',
  trigger: { type: 'manual' as const },
  inputs: {},
  edges: [],
  outputs: {},
  settings: {},
}

const texts = fc
  .oneof(
    fc.string({ unit: 'binary' }).filter((text) => isStorable(text)),
    fc.constantFrom(
      'true',
      '1',
      'null',
      '~',
      '- a',
      'a: b',
      '# c',
      ' x ',
      'a\nb\n\n',
      '  a\n b',
      '{{ a, b }}',
      ',',
    ),
  )
  .filter((text) => !/\{\{/.test(text))

/** Definitions whose edges lead to later nodes; conditions have two handles. */
const graphs: fc.Arbitrary<Definition> = fc
  .uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { minLength: 1 })
  .chain((ids) =>
    fc
      .record({
        kinds: fc.array(fc.tuple(fc.boolean(), fc.nat(3), fc.boolean()), {
          minLength: ids.length,
          maxLength: ids.length,
        }),
        edges: fc.uniqueArray(
          fc.tuple(fc.nat(ids.length - 1), fc.nat(ids.length - 1), fc.constantFrom('true', 'false', 'error')),
          { maxLength: 9, selector: String },
        ),
      })
      .map(
        ({ kinds, edges }): Definition => ({
          ...EMPTY,
          nodes: ids.map((id, i) => {
            const [isCondition, value, ends] = kinds[i]!
            const on_error = ends ? { on_error: 'end' as const } : {}
            return isCondition
              ? {
                  id,
                  type: 'condition',
                  config: { conditions: [{ left: value, operator: 'eq', right: 1 }] },
                  ...on_error,
                }
              : { id, type: 'set_fields', config: { fields: { value } }, ...on_error }
          }),
          edges: edges
            .filter(([from, to]) => from < to)
            .map(([from, to, handle]) => ({
              from: ids[from]!,
              handle: kinds[from]![0] || handle === 'error' ? handle : 'success',
              to: ids[to]!,
            }))
            .filter(
              (edge, i, all) => all.findIndex((one) => JSON.stringify(one) === JSON.stringify(edge)) === i,
            ),
        }),
      ),
  )

const commented = (text: string) => text.replaceAll(/^ {2}(\w+):/gm, (line, id) => `  # about ${id}\n${line}`)
