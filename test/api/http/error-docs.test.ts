import assert from 'node:assert/strict'
import { docUrl, STATUS } from '../../../api/http/errors.ts'
import type { ErrorType } from '../../../db/model/errors.ts'
import { withApi } from '../../support/with-api.ts'

describe('the doc_url of an error', () => {
  const suite = withApi()

  it('leads to what explains its type, with its status', async () => {
    const { body } = await suite.api.request('GET', '/docs/errors', { key: null })
    const types = Object.keys(STATUS) as ErrorType[]
    for (const type of types) {
      const [path, anchor] = docUrl(type).split('#')
      assert.equal(path, '/docs/errors')
      const [, section = ''] = body.split(`id="${anchor}"`)
      assert.match(section.split('<h2 id=')[0]!, new RegExp(`Status ${STATUS[type]}\\.`), type)
    }
    assert.equal(body.split('<h2 id=').length - 1, types.length, 'no section is of no type')
  })

  for (const [path, key, type] of [
    ['/v1/objects/contacts', 'agx_wrong', 'unauthorized'],
    ['/v1/objects/gadgets', undefined, 'not_found'],
    ['/v1/objects/contacts?emial=a', undefined, 'validation_error'],
    ['/app/session', null, 'unauthorized'],
  ] as const)
    it(`is in the answer ${type} of ${path}`, async () => {
      const { body } = await suite.api.request('GET', path, key === undefined ? {} : { key })
      assert.deepEqual([body.error.type, body.error.doc_url], [type, docUrl(type)])
    })
})
