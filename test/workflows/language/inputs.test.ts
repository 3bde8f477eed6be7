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

  it('are refused if they are not among the allowed values, which a default is', () => {
    const specs = { season: { type: 'string', enum: ['summer', 'winter'], default: 'summer' } } as const
    assert.deepEqual(checkInputs(specs, {}).inputs, { season: 'summer' })
    assert.deepEqual(checkInputs(specs, { season: 'winter' }).problems, [])
    assert.deepEqual(checkInputs(specs, { season: 'wintre' }).problems, [
      {
        name: 'season',
        message: 'Input season must be one of summer, winter: did you mean winter?',
        type: 'invalid_value',
      },
    ])
    assert.equal(checkInputs(specs, { season: 5 }).problems[0]!.type, 'type_error')
  })
})
