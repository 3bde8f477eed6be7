import { ok } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { isPair, isScalar, type Pair, parseDocument, visit } from 'yaml'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { validateSpec } from '../../../workflows/authoring/validate.ts'
import { allowedValues } from '../../../workflows/language/value-types.ts'
import { readTemplates } from '../../../workflows/templates/index.ts'
import { random } from '../../support/random.ts'

/**
 * Valid specs with one mistake each: a misspelt key, path or value of a list. Validation must find it, with the right
 * name in a hint. `MUTATIONS=5000` takes more of them.
 */
const FOLDER = new URL('../../fixtures/specs/valid/', import.meta.url)
const SPECS = [
  ...readdirSync(FOLDER)
    .sort()
    .map((name) => ({ name, text: readFileSync(new URL(name, FOLDER), 'utf8') })),
  ...readTemplates().map(({ id, spec }) => ({ name: id, text: spec })),
]
const COUNT = Number(process.env.MUTATIONS ?? 500)
const LEAST = 0.98

/** A word of a spec that has one right spelling. */
interface Place {
  at: number
  word: string
  kind: string
}

/** Settings whose values are names that the service knows. */
const NAMING = [
  'entity',
  'target',
  'operation',
  'operator',
  'field',
  'sort',
  'function',
  'metric',
  'type',
  'by',
]
/** Mappings whose keys the author chooses, or that go to others as they are. */
const OWN_KEYS = [
  'nodes',
  'inputs',
  'outputs',
  'cases',
  'data',
  'headers',
  'query',
  'custom_fields',
  'body',
  'values',
  'properties',
  'output_schema',
  'default',
  'next',
]
/** Members below which anything can be. */
const OPEN = ['body', 'payload', 'custom_fields', 'result', 'outputs', 'headers', 'details', 'inputs']

/** The values of the lists that fields of records have. */
const VALUES = new Set(
  Object.values(catalogue.entities).flatMap(({ record }) =>
    Object.values(record.properties!).flatMap((type) => allowedValues(type) ?? []),
  ),
)

function placesIn(text: string): Place[] {
  const places: Place[] = []
  const add = (at: number, word: string, kind: string) => {
    if (/^[a-z_]{4,}$/.test(word) && text.startsWith(word, at)) places.push({ at, word, kind })
  }
  visit(parseDocument(text), {
    Pair(_, { key, value }, ancestors) {
      if (!isScalar(key) || !key.range) return
      const pairs = ancestors.filter((one): one is Pair => isPair(one))
      const keys = pairs.map((pair) => String((pair.key as { value: unknown }).value))
      const name = String(key.value)
      const config = pairs.findLast((pair) => (pair.key as { value: unknown }).value === 'config')?.value
      const ofRecord = JSON.stringify(config ?? null).includes('"entity"')
      const isOwn = keys.some(
        (one, index) => OWN_KEYS.includes(one) && (index === keys.length - 1 || one !== 'nodes'),
      )
      if (!isOwn && !(keys.includes('fields') && !ofRecord)) add(key.range[0], name, 'key')
      if (!isScalar(value) || !value.range || isOwn) return
      const written = value.range[0] + (/["']/.test(text[value.range[0]]!) ? 1 : 0)
      if (NAMING.includes(name) && !keys.includes('fields'))
        add(written, String(value.value), `value of ${name}`)
      if (keys.at(-1) === 'fields' && ofRecord && VALUES.has(String(value.value)) && name !== 'title')
        add(written, String(value.value), `value of the field ${name}`)
    },
    Scalar(_, { value, range }, ancestors) {
      if (typeof value !== 'string' || !range) return
      const [key] = ancestors.filter((one): one is Pair => isPair(one)).slice(-1)
      if (String((key?.key as { value: unknown })?.value) === 'code') return
      for (const placeholder of text.slice(range[0], range[1]).matchAll(/\{\{[^}]*\}\}/g))
        for (const path of placeholder[0].matchAll(PATHS)) {
          const words = [...path[0].matchAll(/\w+/g)]
          const end = words.findIndex(([word], index) => index > 0 && OPEN.includes(word))
          for (const word of end < 0 ? words : words.slice(0, end + 1))
            add(range[0] + placeholder.index + path.index + word.index, word[0], 'path')
        }
    },
  })
  return places
}

/** Paths whose types are known: not those into inputs of any type. */
const PATHS = /(?<![\w.'"])(?:inputs\.\w+|(?:nodes|trigger|item|run|org)(?:\.\w+|\[\d+\])+)/g

/** A word with one typing error: two letters swapped, one left out, or one doubled. */
function misspelt(word: string, next: () => number): string {
  const at = 1 + Math.floor(next() * (word.length - 2))
  const ways = [
    word.slice(0, at) + word[at + 1] + word[at] + word.slice(at + 2),
    word.slice(0, at) + word.slice(at + 1),
    word.slice(0, at + 1) + word.slice(at),
  ]
  const wrong = ways[Math.floor(next() * ways.length)]!
  return wrong === word ? misspelt(word, next) : wrong
}

function hintsOf(text: string): string {
  const { errors, warnings } = validateSpec(text, catalogue).result
  return [...errors, ...warnings].map(({ hint }) => hint ?? '').join('\n')
}

describe('specs with one mistake', () => {
  it(`are found, with the right name in a hint, in at least ${LEAST * 100} % of ${COUNT}`, () => {
    const { next, pick } = random(27)
    const places = SPECS.flatMap(({ name, text }) =>
      placesIn(text).map((place) => ({ name, text, ...place })),
    )
    const missed: string[] = []
    for (let count = 0; count < COUNT; count++) {
      const { name, text, at, word, kind } = pick(places)
      const wrong = misspelt(word, next)
      const hints = hintsOf(text.slice(0, at) + wrong + text.slice(at + word.length))
      if (!new RegExp(`(?<![a-z])${word}(?![a-z])`).test(hints))
        missed.push(`${name}: ${kind} ${word} as ${wrong}: ${hints.slice(0, 120)}`)
    }
    ok(missed.length <= COUNT * (1 - LEAST), `${missed.length} of ${COUNT} missed:\n${missed.join('\n')}`)
  })
})
