import assert from 'node:assert/strict'
import fc from 'fast-check'
import { summaryOf } from '../../../workflows/bundle/summary.ts'

describe('summaries in the Temporal UI', () => {
  it('are the text, or its first whole characters in at most 400 bytes', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 600 })
    fc.assert(
      fc.property(fc.oneof(text, fc.string({ unit: 'binary', maxLength: 600 })), (title) => {
        const summary = summaryOf(title)
        assert.ok(Buffer.byteLength(summary) <= 400)
        if (summary === title) return
        assert.ok(Buffer.byteLength(title) > 390)
        assert.ok(summary.endsWith('…'))
        assert.ok(title.startsWith(summary.slice(0, -1)))
      }),
    )
    assert.equal(summaryOf('漢'.repeat(200)), `${'漢'.repeat(130)}…`)
    assert.equal(summaryOf('Send the contract'), 'Send the contract')
  })
})
