import { deepEqual, equal, ok } from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { applyHints } from '../../../workflows/authoring/apply-hints.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import { parseYaml } from '../../../workflows/authoring/parse.ts'
import { validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'
import type { Finding } from '../../../workflows/language/definition.ts'
import { CODES } from '../../../workflows/language/finding-codes.ts'
import { ORGANIZATION_CODES } from '../../support/organization-codes.ts'
import { rawOf } from '../../support/raw-of.ts'

/**
 * Specs with their expected findings. The head of a file has a line for each, in order: `#! code line:column`, with
 * lines counted from the end of the head. `#! not mended: <reason>` says which decision its hints leave to the author.
 * With RECORD_SPECS=1 the findings are recorded again: review the difference before you commit it.
 */
const FOLDER = new URL('../../fixtures/specs/', import.meta.url)

const specs = ['valid', 'warned', 'invalid'].flatMap((kind) =>
  readdirSync(new URL(`${kind}/`, FOLDER))
    .sort()
    .map((name) => ({ kind, name, file: new URL(`${kind}/${name}`, FOLDER) })),
)

const raw = readdirSync(new URL('raw/', FOLDER)).map((name) => ({
  file: name,
  ...(JSON.parse(readFileSync(new URL(`raw/${name}`, FOLDER), 'utf8')) as {
    codes: string[]
    definition: unknown
  }),
}))

const NOT_MENDED = 'not mended: '

function read(file: URL) {
  const lines = readFileSync(file, 'utf8').split('\n')
  const body = lines.findIndex((line) => !line.startsWith('#! '))
  const head = lines.slice(0, body).map((line) => line.slice(3))
  return {
    text: lines.slice(body).join('\n'),
    expected: head.filter((line) => !line.startsWith(NOT_MENDED)),
    /** Why no program can apply its hints. */
    unmended: head.find((line) => line.startsWith(NOT_MENDED)),
  }
}

const findingsOf = (text: string) => {
  const { result, definition } = validateSpec(text, catalogue)
  return { ...result, definition, all: [...result.errors, ...result.warnings] }
}

/** The texts, numbers and booleans in a value, each with its JSON Pointer. */
function leavesOf(value: unknown, path = ''): { path: string; value: string }[] {
  if (typeof value !== 'object' || value === null) return [{ path, value: String(value) }]
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, `${path}/${key}`))
}

/** The values that hints have removed beside those that their findings name: the spec then means something else. */
function lostBy(text: string, better: string, applied: Finding[]) {
  const kept = new Set(leavesOf(parseYaml(better).value).map(({ value }) => value))
  const named = applied.map(({ path }) => path)
  return leavesOf(parseYaml(text).value).filter(
    ({ path, value }) => !kept.has(value) && !named.some((one) => `${path}/`.startsWith(`${one}/`)),
  )
}

/** The finding replaces a value, which the raw definition still has. */
const LOST_VALUE = /^yaml_(alias|tag|value)$/
/** Findings of the text only, or of `next`, which raw definitions have as edges, without edges to `end`. */
const OF_YAML =
  /^(yaml_\w+|duplicate_key|code_fence|tab_indent|unquoted_\w+|implicit_end|unconnected_case|loop_takes_the_rest)$/

function isOfYaml({ code, path }: Finding, text: string): boolean {
  if (OF_YAML.test(code)) return true
  // A raw definition may omit its name.
  if (code === 'missing_key' && path === '/name') return true
  if (!/^\/nodes\/[^/]+\/next(\/|$)/.test(path)) return false
  const value = path
    .split('/')
    .slice(1)
    // biome-ignore lint/suspicious/noExplicitAny: YAML
    .reduce<any>((inner, key) => inner?.[key], parseYaml(text).value)
  return code === 'schema' || value === 'end'
}

/** Without positions: the pointers of a list differ from those of a mapping. */
const summaryOf = (findings: Finding[]) =>
  findings
    .map(({ code, message, node_id = '' }) => `${code} ${node_id}: ${inMapping(message, node_id)}`)
    .sort()

/** `nodes.0.retry` of a raw definition as `nodes.a.retry`, and `nodes.0.id` as `nodes.a`. */
const inMapping = (message: string, id: string) =>
  message.replace(/^nodes\.\d+(\.id(?= ))?/, () => `nodes.${id}`)

describe('the corpus of specs', () => {
  for (const { kind, name, file } of specs)
    it(`${kind}: ${name.replace('.yaml', '').replaceAll('-', ' ')}`, () => {
      const { text, expected, unmended } = read(file)
      const mended = unmended === undefined
      const { valid, warnings, all, definition } = findingsOf(text)
      const found = all.map(({ code, line, column }) => `${code} ${line}:${column}`)
      if (process.env.RECORD_SPECS) {
        const head = [...found, ...(mended ? [] : [unmended])].map((line) => `#! ${line}\n`)
        writeFileSync(file, head.join('') + text)
      } else deepEqual(found, expected)
      equal(valid, kind !== 'invalid')
      if (kind === 'valid') deepEqual(warnings, [])
      if (definition) ok(compile(definition))
      if (kind === 'valid') return
      // `one of …` is a choice, which only the expected mends make.
      const applicable = mended ? all : all.filter(({ hint = '' }) => !hint.startsWith('one of '))
      const { text: better, applied } = applyHints(text, applicable)
      const after = findingsOf(better)
      deepEqual(lostBy(text, better, applied), [], better)
      if (!mended) {
        // A hint that a program applied anyway makes nothing worse.
        const before = new Set(all.map(({ code }) => code))
        deepEqual(
          after.all.filter(({ code }) => !before.has(code)),
          [],
          better,
        )
        return
      }
      ok(applied.length > 0, 'no hint can be applied')
      deepEqual(after.errors, [], better)
      const codes = new Set(applied.map(({ code }) => code))
      deepEqual(
        after.warnings.filter(({ code }) => codes.has(code)),
        [],
        better,
      )
    })

  it('has the same findings as raw definitions', () => {
    let compared = 0
    for (const { kind, name, file } of specs) {
      const { text } = read(file)
      const raw = rawOf(text)
      const { all, definition } = findingsOf(text)
      if (!raw || all.some(({ code }) => LOST_VALUE.test(code))) continue
      compared++
      const { result, definition: fromRaw } = validateDefinition(raw, catalogue)
      const expected = all.filter((found) => !isOfYaml(found, text))
      deepEqual(summaryOf([...result.errors, ...result.warnings]), summaryOf(expected), `${kind}/${name}`)
      if (definition) deepEqual(compile(fromRaw!), compile(definition), name)
    }
    ok(compared >= 180, `${compared} compared`)
  })

  it('has the codes of raw definitions', () => {
    for (const { file, codes, definition } of raw) {
      const { result } = validateDefinition(definition, catalogue)
      deepEqual(
        [...result.errors, ...result.warnings].map(({ code }) => code),
        codes,
        file,
      )
    }
  })

  it('has a fixture of every code', () => {
    const recorded = new Set([
      ...specs.flatMap(({ file }) => read(file).expected.map((line) => line.split(' ')[0])),
      ...raw.flatMap(({ codes }) => codes),
      ...ORGANIZATION_CODES,
      // By the plan: call-timeouts.test.ts has it.
      'timeout_too_long',
      // No type is deprecated: validate.test.ts marks one.
      'deprecated_node',
    ])
    deepEqual([...recorded].sort(), Object.keys(CODES).sort())
  })
})
