import assert from 'node:assert/strict'
import fc from 'fast-check'
import { mergeTexts } from '../../../api/console/workflows/merge-texts.ts'

const BASE = 'a\nb\nc\nd\ne\n'

describe('the merge of two changes of a text', () => {
  it('has both where they change different lines', () => {
    assert.equal(mergeTexts(BASE, 'A\nb\nc\nd\ne\n', 'a\nb\nc\nd\nE\nf\n'), 'A\nb\nc\nd\nE\nf\n')
    assert.equal(mergeTexts(BASE, 'a\nb\nd\ne\n', 'x\na\nb\nc\nd\ne\n'), 'x\na\nb\nd\ne\n')
  })

  it('has a change once that both made', () => {
    assert.equal(mergeTexts(BASE, 'a\nB\nc\nd\ne\n', 'a\nB\nc\nd\nE\n'), 'a\nB\nc\nd\nE\n')
  })

  it('is left to the author where both change a line, or lines beside each other', () => {
    assert.equal(mergeTexts(BASE, 'a\nX\nc\nd\ne\n', 'a\nY\nc\nd\ne\n'), undefined)
    assert.equal(mergeTexts(BASE, 'a\nX\nc\nd\ne\n', 'a\nb\nY\nd\ne\n'), undefined)
    assert.equal(mergeTexts(BASE, 'a\nb\nX\nc\nd\ne\n', 'a\nb\nY\nc\nd\ne\n'), undefined)
  })

  it('is left to the author for a text that takes too long to compare', () => {
    const long = 'a line\n'.repeat(20_000)
    assert.equal(mergeTexts(long, `${long}x\n`, `y\n${long}`), undefined)
  })

  it('of any change with none is that change', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 })
      .map((lines) => lines.join('\n'))
    fc.assert(
      fc.property(text, text, (base, other) => {
        assert.equal(mergeTexts(base, base, other), other)
        assert.equal(mergeTexts(base, other, base), other)
        assert.equal(mergeTexts(base, other, other), other)
      }),
    )
  })
})
