import { Script } from 'node:vm'
import { z } from 'zod'
import { typeOfSchema } from '../language/value-types.ts'
import { CODE } from '../shared/limits.ts'
import { type ConfigProblem, defineNode } from './define.ts'
import { declaredType, outputSchemaProblems, requireFit, schemaProblems } from './output-schema.ts'

const mebibytes = (bytes: number) => `${bytes / 1024 / 1024} MiB`

const result = z.strictObject({
  result: z.unknown().describe('The returned value as JSON; null if the code returned nothing.'),
  log: z
    .array(z.string())
    .describe(`What the code has written by \`console.log\`, at most ${CODE.logLines} lines.`),
})

export const code = defineNode({
  type: 'code',
  engine: 1,
  laterUses: [{ engine: 9, isUsed: ({ output_schema }) => output_schema !== undefined }],
  category: 'data',
  title: 'Code',
  alsoCalled: ['javascript', 'js', 'script', 'function', 'run_code', 'execute_code', 'run_javascript'],
  description: `Runs JavaScript, for logic that no other node or filter has. The code is the body of an async function of \`inputs\`; what it returns is \`output.result\`. It has the language and \`console\`, but no network, no timers, no modules and no secrets. It may take ${CODE.ms / 1_000} s and ${mebibytes(CODE.memoryBytes)}; the wait for other code of the organization, up to ${CODE.waitMs / 1_000} s, does not count. The time stands still at the start of the attempt, in UTC, and random numbers are the same in each attempt.`,
  effect: 'external',
  effects: ['sandbox'],
  verbatim: ['code'],
  outputOnly: true,
  config: z.strictObject({
    code: z
      .string()
      .min(1)
      .max(CODE.characters)
      .describe('The body of the function; it ends with `return …`. Placeholders are not rendered in it.'),
    inputs: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('The values that the code reads as `inputs.<name>`; usually placeholders.'),
    output_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        'A JSON Schema that the returned value must fit. Placeholders read the members that it names.',
      ),
  }),
  output: result,
  outputType({ output_schema }) {
    const { properties, ...output } = typeOfSchema(result)
    return { ...output, properties: { ...properties, result: declaredType(output_schema) } }
  },
  handles: () => [{ name: 'success', description: 'The code has ended.' }],
  retry: { max_attempts: 3 },
  check: ({ code, output_schema }) => [
    ...(typeof code === 'string' && code.length <= CODE.characters ? problemsOf(code) : []),
    ...outputSchemaProblems(schemaProblems(output_schema)),
  ],
  example: {
    config: {
      inputs: { prices: '{{ inputs.prices }}' },
      code: 'console.log(inputs.prices.length, "prices"); return { total: inputs.prices.reduce((a, b) => a + b, 0) }',
    },
    inputs: { inputs: { prices: [20, 20, 5] } },
    output: { result: { total: 45 }, log: ['3 prices'] },
  },
  async run({ code, inputs, output_schema }, { sandbox, idempotencyKey, now }) {
    const output = await sandbox.run({ code, inputs, seed: idempotencyKey, now })
    requireFit(output_schema, output.result, 'output.result')
    return { output }
  },
})

/** A placeholder; outside of a string literal it is a mistake in JavaScript. */
const PLACEHOLDER = /\{\{\s*((?:inputs|nodes|trigger|item|index|run|org|env|secrets)\b[^{}]*?)\s*\}\}/

function problemsOf(code: string): ConfigProblem[] {
  const [whole, read] = PLACEHOLDER.exec(code) ?? []
  const syntax = syntaxError(code)
  if (syntax === undefined && whole === undefined) return []
  if (whole !== undefined)
    return [
      {
        code: 'invalid_config',
        message: `code has the placeholder ${whole.slice(0, 200)}, but is not rendered`,
        path: ['code'],
        hint: `give it in \`inputs\`, {value: "${whole.slice(0, 200)}"}, and write inputs.value in the code instead of ${read!.slice(0, 200)}`,
      },
    ]
  return [{ code: 'invalid_config', message: `code ${syntax}`, path: ['code'] }]
}

/** Compiles the code, without running it. */
function syntaxError(code: string): string | undefined {
  try {
    new Script(`(async (inputs) => {\n${code}\n})`, { filename: 'code.js' })
    return undefined
  } catch (error) {
    if (!(error instanceof SyntaxError)) return 'is nested too deeply'
    const line = Number(/^code\.js:(\d+)/.exec(error.stack ?? '')?.[1] ?? 0) - 1
    return `is not valid JavaScript: ${error.message}${line > 0 ? ` (line ${line} of the code)` : ''}`
  }
}
