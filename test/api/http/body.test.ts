import assert from 'node:assert/strict'
import { parseJson } from '../../../api/http/body.ts'

describe('the position of a JSON error', () => {
  const messageOf = (text: string) => {
    try {
      parseJson(Buffer.from(text))
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }

  it('is the first token that does not fit', () => {
    const broken: [text: string, line: number, column: number][] = [
      ['', 1, 1],
      ['{"a": }', 1, 7],
      ['{"a" 1}', 1, 6],
      ['{"a": 1,}', 1, 9],
      ['{"a": 1} // comment', 1, 10],
      ['[1,\n]', 2, 1],
      ["{\n  'a': 1}", 2, 3],
      ['{"a": 01}', 1, 8],
      ['{"a": "x', 1, 7],
      ['["\\x"]', 1, 2],
      ['[]]', 1, 3],
      ['[}', 1, 2],
      ['{"a": undefined}', 1, 7],
    ]
    for (const [text, line, column] of broken)
      assert.equal(messageOf(text), `the body is not valid JSON at line ${line}, column ${column}`, text)
    assert.equal(messageOf('{"a": [1, "\u007f"]}'), undefined)
  })

  it('is left out of a long or deeply nested body', () => {
    for (const text of [`"${'x'.repeat(200_000)}`, '['.repeat(90_000)])
      assert.equal(messageOf(text), 'the body is not valid JSON')
  })
})
