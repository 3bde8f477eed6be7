import assert from 'node:assert/strict'
import { readInputs } from '../../../../db/model/incoming/read-inputs.ts'
import type { InputSpec } from '../../../../workflows/language/definition.ts'

describe('values of a payload as inputs', () => {
  const read = (spec: InputSpec | InputSpec['type'], value: unknown) =>
    readInputs({ x: typeof spec === 'string' ? { type: spec } : spec }, { x: value }).x

  for (const [type, value, expected] of [
    ['number', '3', 3],
    ['number', '-2.50', -2.5],
    ['number', '9,50', 9.5],
    ['number', '1.200,50', 1200.5],
    // It may be 1250 or 1.25.
    ['number', '1,250', '1,250'],
    ['number', 'three', 'three'],
    ['number', '', null],
    ['number', '  ', null],
    ['number', true, true],
    ['number', `${'9'.repeat(50)}`, '9'.repeat(50)],
    ['boolean', 'on', true],
    ['boolean', 'FALSE', false],
    ['boolean', 'nein', false],
    ['boolean', 0, false],
    ['boolean', 'maybe', 'maybe'],
    ['boolean', 2, 2],
    ['string', 436601, '436601'],
    ['string', false, 'false'],
    ['string', '', ''],
    ['array', 'Ada', ['Ada']],
    ['array', '["Ada", "Bob"]', ['Ada', 'Bob']],
    ['array', '{"a": 1}', [{ a: 1 }]],
    ['array', '[1', ['[1']],
    ['array', { sku: 'a' }, [{ sku: 'a' }]],
    ['array', [], []],
    ['array', null, null],
    ['array', '', null],
    ['object', '{"a": 1}', { a: 1 }],
    ['object', 'a', 'a'],
    ['any', '3', '3'],
    ['any', '', ''],
  ] as const)
    it(`${JSON.stringify(value)} as ${type}`, () => assert.deepEqual(read(type, value), expected))

  it('is missing if it is an empty text, and the input has a set of others', () => {
    assert.equal(read({ type: 'string', enum: ['a'] }, ' '), null)
    assert.equal(read({ type: 'string', enum: ['a', ''] }, ''), '')
  })

  it('leaves what the workflow does not know', () =>
    assert.deepEqual(readInputs({}, { x: '3', constructor: 1 }), { x: '3', constructor: 1 }))
})
