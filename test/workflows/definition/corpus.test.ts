import { deepEqual, equal, ok } from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { compile } from '../../../workflows/definition/compile.ts'
import { validateSpec } from '../../../workflows/definition/validate.ts'
import { applyHints } from '../../support/apply-hints.ts'

/**
 * Specs with exactly the findings that are expected of them. The head of a file has one line for each, in order:
 * `#! code line:column`, counted from the line after the head. `#! not mended` says that its hints need a decision that no
 * program can take. With RECORD_SPECS=1 the findings are written anew: read the difference before it is committed.
 */
const FOLDER = new URL('../../fixtures/specs/', import.meta.url)

const specs = ['valid', 'warned', 'invalid'].flatMap((kind) =>
  readdirSync(new URL(`${kind}/`, FOLDER))
    .sort()
    .map((name) => ({ kind, name, file: new URL(`${kind}/${name}`, FOLDER) })),
)

function read(file: URL) {
  const lines = readFileSync(file, 'utf8').split('\n')
  const body = lines.findIndex((line) => !line.startsWith('#! '))
  const head = lines.slice(0, body).map((line) => line.slice(3))
  return {
    text: lines.slice(body).join('\n'),
    expected: head.filter((line) => line !== 'not mended'),
    mended: !head.includes('not mended'),
  }
}

const findingsOf = (text: string) => {
  const { result, definition } = validateSpec(text, catalogue)
  return { ...result, definition, all: [...result.errors, ...result.warnings] }
}

describe('the corpus of specs', () => {
  for (const { kind, name, file } of specs)
    it(`${kind}: ${name.replace('.yaml', '').replaceAll('-', ' ')}`, () => {
      const { text, expected, mended } = read(file)
      const { valid, warnings, all, definition } = findingsOf(text)
      const found = all.map(({ code, line, column }) => `${code} ${line}:${column}`)
      if (process.env.RECORD_SPECS) {
        const head = [...found, ...(mended ? [] : ['not mended'])].map((line) => `#! ${line}\n`)
        writeFileSync(file, head.join('') + text)
      } else deepEqual(found, expected)
      equal(valid, kind !== 'invalid')
      if (kind === 'valid') deepEqual(warnings, [])
      if (definition) ok(compile(definition))
      if (kind === 'valid' || !mended) return
      const { text: better, applied } = applyHints(text, all)
      ok(applied.length > 0, 'no hint can be applied')
      const after = findingsOf(better)
      deepEqual(after.errors, [], better)
      const codes = new Set(applied.map(({ code }) => code))
      deepEqual(
        after.warnings.filter(({ code }) => codes.has(code)),
        [],
        better,
      )
    })

  it('has each code of a mistake in an author’s text', () => {
    const recorded = new Set(
      specs.flatMap(({ file }) => read(file).expected.map((line) => line.split(' ')[0])),
    )
    ok(recorded.size >= 40, `${recorded.size} codes`)
    ok(specs.length >= 60)
  })
})
