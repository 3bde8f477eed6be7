import assert from 'node:assert/strict'
import { checkInputs } from '../../../workflows/language/inputs.ts'

describe('inputs of a run', () => {
  it('get defaults, and are null if optional', () => {
    const specs = { a: { type: 'number', default: 3 }, b: { type: 'string' } } as const
    assert.deepEqual(checkInputs(specs, {}), { inputs: { a: 3, b: null }, problems: [] })
  })

  it('are refused all at once: missing, of another type, unknown', () => {
    const specs = { a: { type: 'number', required: true }, b: { type: 'object' } } as const
    const { problems } = checkInputs(specs, { b: [], constructor: 1 })
    assert.deepEqual(
      problems.map(({ name, type }) => [name, type]),
      [
        ['a', 'missing'],
        ['b', 'type_error'],
        ['constructor', 'unknown_input'],
      ],
    )
  })
})
