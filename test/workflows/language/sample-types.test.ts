import { deepEqual, equal } from 'node:assert/strict'
import { filledFrom, originOf, typeOfSamples } from '../../../workflows/language/sample-types.ts'
import { memberType, TEXT, UNKNOWN, type ValueType } from '../../../workflows/language/value-types.ts'

const ORIGIN = { code: 'unlike_sample', what: 'a sample', otherwise: '' } as const
const at = (type: ValueType, keys: (string | number)[]) => {
  let found: ValueType | undefined = type
  for (const key of keys) {
    const member = memberType(found!, key)
    if (!('type' in member)) return undefined
    found = member.type
  }
  return found
}

describe('the type of samples', () => {
  const type = typeOfSamples([{ a: null, list: [], deep: [[1]], text: 'x', yes: true }], ORIGIN)

  it('does not tell of what follows null, or of other items of a list', () => {
    for (const keys of [
      ['a', 'b'],
      ['list', 3, 'x'],
      ['list', 'first', 'x'],
      ['deep', 0, 9],
      ['text', 'size'],
      ['size'],
    ])
      equal(at(type, keys) === undefined, false, keys.join('.'))
    for (const keys of [['b'], ['list', 'x'], ['text', 0], ['yes', 'no'], ['constructor']])
      equal(at(type, keys), undefined, keys.join('.'))
  })

  it('has the members of all of them', () => {
    const both = typeOfSamples([{ a: 1 }, { a: 'x', b: [{ c: 1 }, { d: 2 }] }], ORIGIN)
    for (const keys of [['a'], ['b', 0, 'c'], ['b', 0, 'd']]) equal(originOf(at(both, keys)!), ORIGIN)
    equal(at(both, ['c']), undefined)
  })

  it('ends at a depth', () => {
    let nested: unknown = 1
    for (let depth = 0; depth < 20_000; depth++) nested = { a: nested }
    equal(at(typeOfSamples([nested], ORIGIN), Array(30).fill('a')), UNKNOWN)
  })

  it('is open where a mapping has the names of ids', () => {
    const byId = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`id_${index}`, { a: 1 }]))
    equal(at(typeOfSamples([byId], ORIGIN), ['id_502', 'b']), UNKNOWN)
  })

  it('fills only what is not known', () => {
    const known: ValueType = {
      type: 'object',
      properties: { status: TEXT, body: UNKNOWN },
      additionalProperties: false,
    }
    const filled = filledFrom(known, typeOfSamples([{ status: 200, body: { id: 1 }, more: 1 }], ORIGIN))
    equal(at(filled, ['status']), TEXT)
    equal(at(filled, ['body', 'id'])?.type, 'number')
    equal(at(filled, ['body', 'ix']), undefined)
    equal(at(filled, ['more']), undefined)
    deepEqual(filledFrom(known, undefined), known)
  })
})
