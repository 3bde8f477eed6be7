import assert from 'node:assert/strict'
import fc from 'fast-check'
import { jsonErrorIndex } from '../../../api/http/json-position.ts'

describe('the position of a JSON error', () => {
  it('is that of the first token that does not fit', () => {
    const broken: [string, number][] = [
      ['', 0],
      ['{"a": }', 6],
      ['{"a" 1}', 5],
      ['{"a": 1,}', 8],
      ['[1,]', 3],
      ['[1 2]', 3],
      ["{'a': 1}", 1],
      ['{"a": 01}', 7],
      ['{"a": "x', 6],
      ['[]]', 2],
      ['[}', 1],
      ['{"a": undefined}', 6],
      ['"\u007f\u0085" x', 5],
    ]
    for (const [text, index] of broken) assert.equal(jsonErrorIndex(text), index, text)
  })

  it('is the end of any JSON cut short, and of none that is whole', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, cut) => {
        assert.equal(jsonErrorIndex(text), text.length)
        const short = text.slice(0, cut % (text.length + 1))
        assert.ok(jsonErrorIndex(short) <= short.length)
      }),
    )
  })
})
