import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { open, seal } from '../../../db/process/seal.ts'

describe('sealed secrets', () => {
  const key = randomBytes(32)

  it('decrypt to the original text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => assert.equal(open(key, seal(key, text)), text)),
    )
  })

  it('decrypt after a rotation of SECRETS_KEY if the old key is passed too', () => {
    assert.equal(open([randomBytes(32), key], seal(key, 'secret')), 'secret')
    assert.throws(() => open(randomBytes(32), seal(key, 'secret')), /another SECRETS_KEY/)
  })

  it('do not decrypt for another owner', () => {
    const sealed = seal(key, 'secret', 'organization.name')
    assert.equal(open(key, sealed, 'organization.name'), 'secret')
    for (const owner of ['', 'organization.other', 'other.name'])
      assert.throws(() => open(key, sealed, owner), owner)
  })

  it('do not decrypt if altered or truncated', () => {
    const sealed = seal(key, 'a long enough secret')
    const start = sealed.lastIndexOf('.') + 1
    const other = sealed[start] === 'A' ? 'B' : 'A'
    assert.throws(() => open(key, sealed.slice(0, start) + other + sealed.slice(start + 1)))
    assert.throws(() => open(key, sealed.slice(0, start + 8)))
    assert.throws(() => open(key, 'plain text'))
  })
})
