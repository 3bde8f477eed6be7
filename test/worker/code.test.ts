import { deepEqual, equal, match } from 'node:assert/strict'
import { catalogue } from '../../api/v1/catalogue.ts'
import { validateSpec } from '../../workflows/authoring/validate.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

describe('code in a workflow', () => {
  const suite = withWorker()

  const run = async (spec: string, inputs: Record<string, unknown>) => {
    const { definition, result } = validateSpec(spec, catalogue)
    deepEqual([...result.errors, ...result.warnings], [])
    return untilRun(suite.db, await queueRun(suite.db, suite.organizationId, definition!, inputs))
  }

  it('gets values, and its text is passed as written', async () => {
    const { outputs } = await run(
      `name: Sum
inputs: {lines: {type: array, required: true}}
nodes:
  sum:
    type: code
    config:
      inputs: {lines: "{{ inputs.lines }}"}
      code: |
        const total = inputs.lines.reduce((sum, price) => sum + price, 0)
        console.log(\`\${inputs.lines.length} lines\`)
        return { total, text: "Dear {{ name }}, \${inputs.lines}" }
outputs: {sum: "{{ nodes.sum.output.result }}", log: "{{ nodes.sum.output.log }}"}
`,
      { lines: [1, 2, 3.5] },
    )
    deepEqual(outputs, {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a text
      sum: { total: 6.5, text: 'Dear {{ name }}, ${inputs.lines}' },
      log: ['3 lines'],
    })
  })

  it('leaves by error with the line, once, since it would fail again', async () => {
    const { status, outputs } = await run(
      `name: Fail
inputs: {name: {type: string, required: true}}
nodes:
  work:
    type: code
    config:
      inputs: {name: "{{ inputs.name }}"}
      code: |
        const name = inputs.name
        throw new Error("no " + name)
    next: {error: caught}
  caught: {type: set_fields, config: {fields: {error: "{{ nodes.work.error }}"}}}
outputs: {error: "{{ nodes.caught.output.error }}"}
`,
      { name: 'Ada' },
    )
    equal(status, 'completed')
    const { error } = outputs as { error: { code: string; message: string; details: object } }
    equal(error.code, 'code_failed')
    match(error.message, /^line 2: Error: no Ada/)
    const [row] = await suite.db.system('run_nodes').where({ node_id: 'work' })
    equal(row.attempt, 1)
  })

  it('has its whole time although endless code of another workflow runs before it', async () => {
    const { db, organizationId } = suite
    const node = (text: string) => ({ id: 'work', type: 'code', config: { code: text }, timeout: '4s' })
    const queue = (text: string) =>
      queueRun(db, organizationId, { nodes: [node(text)], outputs: { of: '{{ nodes.work.output.result }}' } })
    const endless = [await queue('for (;;) {}'), await queue('for (;;) {}')]
    // They run one after the other, for 3 s each.
    for (const id of endless) await untilRun(db, id, ['running'])
    const [last, ...others] = await Promise.all(
      [await queue('return 1'), ...endless].map((id) => untilRun(db, id)),
    )
    deepEqual([last!.error, last!.outputs], [null, { of: 1 }])
    for (const { error } of others) match(`${error?.code}: ${error?.message}`, /^code_timeout: .* 3 s/)
  })

  it('gets no secrets', async () => {
    const nodes = [
      { id: 'leak', type: 'code', config: { inputs: { a: '{{ secrets.token }}' }, code: 'return inputs.a' } },
    ]
    const { definition, result } = validateSpec(
      `name: Leak\nnodes: {leak: {type: code, config: {inputs: {a: "{{ secrets.token }}"}, code: return inputs.a}}}\noutputs: {a: "{{ nodes.leak.output.result }}"}`,
      catalogue,
    )
    equal(definition, undefined)
    deepEqual(
      result.errors.map(({ code }) => code),
      ['root_not_available'],
    )
    const { error } = await untilRun(suite.db, await queueRun(suite.db, suite.organizationId, { nodes }))
    equal(error?.code, 'secrets_not_available')
  })
})
