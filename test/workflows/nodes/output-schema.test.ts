import { deepEqual, equal, match } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'
import { OUTPUT_SCHEMA } from '../../../workflows/shared/limits.ts'
import { executeNode } from '../../support/execute-node.ts'

const SCHEMA = {
  type: 'object',
  properties: { total: { type: 'number' }, state: { enum: ['paid', 'open'] } },
  required: ['total'],
}

const codeThatReturns = (result: unknown, output_schema: object) =>
  executeNode(
    'code',
    { code: 'return 1', output_schema },
    { effects: { sandbox: { run: async () => ({ result, log: [] }) } } as never },
  )

const request = (body: unknown, output_schema: object) =>
  executeNode(
    'api_request',
    { url: 'https://x.test', output_schema },
    {
      effects: {
        http: { request: async () => ({ status: 200, headers: {}, body, body_error: null }) },
      } as never,
    },
  )

const found = (config: object) =>
  validateSpec(
    JSON.stringify({ name: 'T', nodes: { a: { type: 'code', config: { code: 'return 1', ...config } } } }),
    catalogue,
  ).result.errors.map(({ code, message }) => `${code} ${message}`)

describe('output_schema of code and api_request', () => {
  it('lets a value that fits pass, with members that it does not name', async () => {
    for (const run of [codeThatReturns, request]) {
      const outcome = await run({ total: 1, state: 'paid', more: true }, SCHEMA)
      equal(outcome.status, 'completed')
    }
  })

  it('fails the node, for good, if the value does not fit, and says where', async () => {
    for (const [run, what] of [
      [codeThatReturns, 'output.result'],
      [request, 'output.body'],
    ] as const) {
      const outcome = await run({ total: '1', state: 'late' }, SCHEMA)
      if (outcome.status !== 'failed') throw new Error(outcome.status)
      deepEqual([outcome.error.code, outcome.retryable], ['output_invalid', false])
      match(outcome.error.message, new RegExp(`^${what} does not fit output_schema: total .*; state `))
      equal((await run(null, SCHEMA)).status, 'failed')
    }
  })

  it('is bounded: in size, depth, keywords and comparisons', async () => {
    const large = { type: 'object', description: 'x'.repeat(40_000) }
    match(found({ output_schema: large }).join(), /more than 32768 characters/)
    match(found({ output_schema: { $ref: '#' } }).join(), /cannot have \$ref/)
    match(found({ output_schema: { type: 'string', pattern: '(a+)+$' } }).join(), /cannot have pattern/)
    let deep: object = { type: 'string' }
    for (let level = 0; level < 30; level++) deep = { type: 'array', items: deep }
    match(found({ output_schema: deep }).join(), /nested too deeply/)
    match(found({ output_schema: { type: 'nothing' } }).join(), /output_schema is not valid/)
    const options = Array.from({ length: 300 }, (_, n) => ({
      type: 'object',
      properties: { [`a${n}`]: { const: n } },
    }))
    const many = Array.from({ length: OUTPUT_SCHEMA.checks / 300 }, () => ({}))
    const outcome = await codeThatReturns(many, { type: 'array', items: { anyOf: options } })
    match(outcome.status === 'failed' ? outcome.error.message : '', /too many values/)
  })

  it('belongs to no file', () => {
    const spec = `name: T
nodes: {a: {type: api_request, config: {url: "https://x.test", response: file, output_schema: {type: object}}}}`
    const { errors } = validateSpec(spec, catalogue).result
    deepEqual(
      errors.map(({ path, hint }) => [path, hint]),
      [['/nodes/a/config/output_schema', 'remove it']],
    )
  })
})
