import { ok } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import { type Validated, validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'
import { SPEC } from '../../../workflows/shared/limits.ts'
import { readTemplates } from '../../../workflows/templates/index.ts'
import { cpuTime } from '../../support/cpu-time.ts'
import { random } from '../../support/random.ts'
import { rawOf } from '../../support/raw-of.ts'
import { stepsOf } from '../../support/steps.ts'

/** `FUZZ_CASES=100000` is the long form; `FUZZ_SEED` another selection. */
const CASES = Number(process.env.FUZZ_CASES ?? 200)
const SEED = Number(process.env.FUZZ_SEED ?? 1)
/** CPU time from which the steps of a validation are counted: counting is slow, and time alone depends on the machine. */
const SUSPECT_MS = 500
/** Maximum steps of one validation. */
const MOST_STEPS = 20_000_000
/** One case of this number is repeated up to the maximum length of a spec. */
const LONG = 200

const FOLDER = new URL('../../fixtures/specs/', import.meta.url)
const REAL = [
  ...['valid', 'warned', 'invalid'].flatMap((kind) =>
    readdirSync(new URL(`${kind}/`, FOLDER)).map((name) =>
      readFileSync(new URL(`${kind}/${name}`, FOLDER), 'utf8'),
    ),
  ),
  ...readTemplates().map(({ spec }) => spec),
]

/** Tokens with a meaning in YAML, in placeholders or in JavaScript. */
const TOKENS = [
  '{{',
  '}}',
  '{%',
  '[',
  ']',
  '{',
  '}',
  ': ',
  ':\n',
  '- ',
  '? ',
  '|\n',
  '>-\n',
  '\n',
  '\t',
  '#',
  '"',
  "'",
  '&a ',
  '*a',
  '!!',
  '---\n',
  '...\n',
  '<<: ',
  '%YAML 1.1\n',
  '\0',
  '\u{feff}',
  '\ud800',
  '\u2028',
  '\r',
  '__proto__',
  'constructor',
  'null',
  '~',
  '1e999',
  '0x1',
  '-0',
  '9007199254740993',
  '.nan',
  'yes',
  'end',
  'nodes.',
  'inputs.',
  'secrets.',
  ' | default: ',
  ' | where: ',
  'next: ',
  'for_each',
  'code',
  '('.repeat(60),
]

describe('validation of any input', function () {
  this.timeout(CASES * 200 + 30_000)
  const slowest = { ms: 0, what: '' }
  const suspects: { what: string; validate: () => void }[] = []

  /** Every input gets a result, and a valid one compiles. */
  const check = (what: string, validate: () => Validated) => {
    const validated = () => {
      const { result, definition } = validate()
      if (definition) compile(definition)
      return result
    }
    const started = cpuTime()
    const { errors, warnings } = validated()
    const ms = cpuTime() - started
    if (ms > slowest.ms) Object.assign(slowest, { ms, what })
    if (ms > SUSPECT_MS) suspects.push({ what, validate: validated })
    for (const { line = 1, column = 1 } of [...errors, ...warnings])
      ok(line >= 1 && column >= 1, what.slice(0, 2_000))
  }

  async function assertFewSteps(): Promise<void> {
    for (const { what, validate } of suspects.splice(0)) {
      const steps = await stepsOf(validate)
      ok(steps < MOST_STEPS, `${steps} steps for ${what.length} characters: ${what.slice(0, 2_000)}`)
    }
  }

  after(() => {
    if (CASES > 1_000)
      process.stdout.write(
        `    slowest: ${slowest.ms.toFixed(0)} ms of CPU time for ${slowest.what.slice(0, 300)}\n`,
      )
  })

  it('never throws, dies or takes many steps for mutated specs', async () => {
    const { next, pick } = random(SEED)
    const below = (most: number) => Math.floor(next() * most)
    for (let n = 0; n < CASES * 0.8; n++) {
      let bytes: Buffer = Buffer.from(pick(REAL))
      for (let times = 1 + below(4); times > 0; times--) bytes = mutated(bytes, below, pick)
      let text = bytes.toString(below(10) === 0 ? 'latin1' : 'utf8')
      if (below(LONG) === 0) text = repeated(text, below)
      check(JSON.stringify(text), () => validateSpec(text, catalogue))
    }
    await assertFewSteps()
  })

  it('never throws, dies or takes many steps for mutated raw definitions', async () => {
    const raw = REAL.flatMap((text) => rawOf(text) ?? [])
    const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom<unknown>(...TOKENS, ...raw))
    fc.assert(
      fc.property(fc.constantFrom(...raw), fc.array(fc.nat(1_000)), anything, (definition, way, value) => {
        const changed = replacedAt(structuredClone(definition), way, value)
        check(JSON.stringify(changed), () => validateDefinition(changed, catalogue))
      }),
      { numRuns: Math.ceil(CASES * 0.2), seed: SEED },
    )
    await assertFewSteps()
  })
})

/** A whole number from 0, below `most`. */
type Below = (most: number) => number
type Pick = ReturnType<typeof random>['pick']

/** Changes, removes, repeats or moves bytes, or inserts a token or a part of another spec. */
function mutated(bytes: Buffer, below: Below, pick: Pick): Buffer {
  const at = below(bytes.length + 1)
  const to = Math.min(bytes.length, at + below(40))
  const [head, part, tail] = [bytes.subarray(0, at), bytes.subarray(at, to), bytes.subarray(to)]
  const other = () => {
    const from = Buffer.from(pick(REAL))
    const start = below(from.length)
    return from.subarray(start, start + below(300))
  }
  const put = [
    () => Buffer.from([below(256)]),
    () => Buffer.alloc(0),
    () => Buffer.concat([part, part]),
    () => Buffer.from(part).reverse(),
    () => Buffer.concat([part, Buffer.from(pick(TOKENS))]),
    () => Buffer.from(pick(TOKENS)),
    () => other(),
  ][below(7)]!()
  return Buffer.concat([head, put, tail])
}

/** Repeats a part as often as it fits. */
function repeated(text: string, below: Below): string {
  const start = below(text.length)
  const part = text.slice(start, start + 1 + below(200)) || '['
  const room = SPEC.bytes - Buffer.byteLength(text)
  return (
    text.slice(0, start) +
    part.repeat(Math.max(0, Math.floor(room / Buffer.byteLength(part)))) +
    text.slice(start)
  )
}

/** Replaces the member at the path of indices. */
function replacedAt(value: unknown, [first, ...rest]: number[], by: unknown): unknown {
  if (typeof value !== 'object' || value === null || first === undefined) return by
  const keys = Object.keys(value)
  const key = keys[first % Math.max(1, keys.length)]
  if (key === undefined) return by
  const holder = value as Record<string, unknown>
  holder[key] = replacedAt(holder[key], rest, by)
  return holder
}
