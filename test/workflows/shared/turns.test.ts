import assert from 'node:assert/strict'
import { createTurns, turnsOf } from '../../../workflows/shared/turns.ts'
import { countingTurns } from '../../support/count-turns.ts'

/** More than the turn of one loop. */
const LONG_MS = 12
const LOOPS = 5

function computeFor(milliseconds: number): void {
  for (const end = performance.now() + milliseconds; performance.now() < end; );
}

describe('loops over data of tenants', () => {
  it('go on one after the other, each in a turn of the event loop', async () => {
    const goneOn: number[] = []
    const ended: number[] = []
    await countingTurns((turns) =>
      Promise.all(
        Array.from({ length: LOOPS }, async (_, loop) => {
          const turn = createTurns()
          for (let step = 0; step < 3; step++) {
            computeFor(LONG_MS)
            await turn()
            goneOn.push(turns())
          }
          ended.push(loop)
        }),
      ),
    )
    assert.equal(new Set(goneOn).size, goneOn.length, `loops went on in the same turn: ${goneOn}`)
    assert.deepEqual(ended, [0, 1, 2, 3, 4], 'they take turns')
  })

  it('go on of one organization after the other, whatever one of them has', async () => {
    const goneOn: string[] = []
    const loop = async (organization: string) => {
      const turn = createTurns(organization)
      for (let step = 0; step < 3; step++) {
        computeFor(LONG_MS)
        await turn()
        goneOn.push(organization)
      }
    }
    await Promise.all([...Array.from({ length: LOOPS }, () => loop('of many')), loop('of one')])
    const expected = ['of many', 'of one', 'of many', 'of one', 'of many', 'of one']
    assert.deepEqual(goneOn.slice(0, 6), expected)
  })

  it('do not wait before their turn is over', () => {
    assert.equal(createTurns()(), undefined)
  })

  it('wait for their first turn where requests bring them, unless they are short', () => {
    assert.equal(turnsOf('a', 5)(), undefined)
    assert.ok(turnsOf('a', 200)() instanceof Promise)
  })
})
