import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SCOPES } from '../../../api/http/scopes.ts'
import { describeTools } from '../../../api/mcp/describe-tools.ts'
import { toOperations, visibleTo } from '../../../api/mcp/operations.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { type Json, rawMcp } from '../../support/mcp.ts'
import { withApi } from '../../support/with-api.ts'

/** `FUZZ_CASES=10000` for the long run; FUZZ_SEED selects other cases. */
const CASES = Number(process.env.FUZZ_CASES ?? 200)
const seed = Number(process.env.FUZZ_SEED ?? 1)

const tools = describeTools(visibleTo(new Set(SCOPES), toOperations(routes).operations))

const HOSTILE = [
  '',
  '..',
  '../..',
  '%00',
  '%ff',
  '\u0000',
  '\ud800',
  '__proto__',
  'constructor',
  '{{ 1 }}',
  'a'.repeat(3_000),
]
const text = fc.oneof(fc.constantFrom(...HOSTILE), fc.string(), fc.uuid())
const anything = fc.oneof(
  text,
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.array(text, { maxLength: 3 }),
  fc.dictionary(text, fc.oneof(text, fc.integer(), fc.constant(null)), { maxKeys: 3 }),
)

/** Mostly the values that a schema lists, and sometimes anything. */
function valueOfSchema(schema: Json): fc.Arbitrary<unknown> {
  if (!schema.enum) return anything
  return fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...schema.enum) },
    { weight: 1, arbitrary: anything },
  )
}

const calls = fc.constantFrom(...tools).chain(({ name, inputSchema }) => {
  const { kind, action, ...others } = inputSchema.properties as Record<string, Json>
  const selectors = {
    ...(kind && { kind: valueOfSchema(kind) }),
    ...(action && { action: valueOfSchema(action) }),
  }
  return fc
    .tuple(
      fc.record(selectors, { requiredKeys: kind ? ['kind'] : [] }),
      fc.record(
        Object.fromEntries(Object.entries(others).map(([key, schema]) => [key, valueOfSchema(schema)])),
        {
          requiredKeys: [],
        },
      ),
    )
    .map(([selected, given]) => ({ name, arguments: { ...given, ...selected } }))
})

describe('the tools of the Model Context Protocol, with any arguments', function () {
  this.timeout(600_000)
  const suite = withApi()

  it(`answer ${CASES} calls with a result or with what is wrong`, async () => {
    await fc.assert(
      fc.asyncProperty(calls, async (params) => {
        const { status, body } = await suite.api.request('POST', '/mcp', rawMcp('tools/call', params))
        const shown = JSON.stringify({ params, body })
        assert.equal(status, 200, shown)
        assert.ok(body.result, shown)
        const type = body.result.structuredContent?.error?.type
        assert.ok(!['internal_error', 'unavailable'].includes(type), shown)
      }),
      { numRuns: CASES, seed },
    )
  })
})
