import { deepEqual, equal, rejects } from 'node:assert/strict'
import { NeedsComputation, withComputed } from '../../../../db/process/compute/computed.ts'

describe('computations before a transaction', () => {
  it('are each made once, outside of the attempts, which begin again', async () => {
    const steps: string[] = []
    const sum = await withComputed(
      async (text: string) => {
        steps.push(`compute ${text}`)
        return text.length
      },
      async (computed) => {
        steps.push('begin')
        return computed('a') + computed('bcd') + computed('a')
      },
    )
    equal(sum, 5)
    deepEqual(steps, ['begin', 'compute a', 'begin', 'compute bcd', 'begin'])
  })

  it('throw their error in the attempt, which may go on', async () => {
    const fail = async (text: string): Promise<number> => Promise.reject(new Error(`no ${text}`))
    await rejects(
      withComputed(fail, async (computed) => computed('a')),
      /no a/,
    )
    const caught = await withComputed(fail, async (computed) => {
      try {
        return computed('a')
      } catch (error) {
        if (error instanceof NeedsComputation) throw error
        return -1
      }
    })
    equal(caught, -1)
  })

  it('may be within others, of which each makes its own', async () => {
    const made: string[] = []
    const compute = (name: string) => async (text: string) => {
      made.push(`${name} ${text}`)
      return `${name}(${text})`
    }
    const result = await withComputed(compute('outer'), (outer) =>
      withComputed(compute('inner'), async (inner) => `${inner('a')} ${outer('b')}`),
    )
    equal(result, 'inner(a) outer(b)')
    // The outer transaction begins again, and with it the inner one.
    deepEqual(made, ['inner a', 'outer b', 'inner a'])
  })
})
