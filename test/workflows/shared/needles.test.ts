import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Needles } from '../../../workflows/shared/needles.ts'

describe('the search for many texts', () => {
  // Few letters, so that texts share their parts, and often begin and end within each other.
  const text = (maxLength: number) =>
    fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 1, maxLength })

  it('finds exactly the texts that a search for each one finds, in their order', () => {
    fc.assert(
      fc.property(
        fc.array(text(40), { maxLength: 12 }),
        fc.array(text(60), { maxLength: 6 }),
        (needles, parts) => {
          // Some are hidden in the text, at any position.
          const whole = parts.map((part, index) => part + (needles[index] ?? '')).join('')
          const search = new Needles<number>()
          for (const [index, needle] of needles.entries()) search.add(needle, index)
          const expected = needles.flatMap((needle, index) => (whole.includes(needle) ? [index] : []))
          assert.deepEqual(search.in(whole), expected)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})
