import assert from 'node:assert/strict'
import { recordExample } from '../../../db/model/records/examples.ts'
import { kinds } from '../../../db/model/records/kinds/index.ts'
import { assertDeclared } from '../../support/declared.ts'

const contact = recordExample(kinds.contacts)
const PATH = `/v1/objects/contacts/${contact.id}`
const answer = (status: number, body: object, type = 'application/json; charset=utf-8') => ({
  status,
  headers: new Headers({ 'Content-Type': type }),
  body,
})
const list = (record: object) => ({
  object: 'list',
  data: [record],
  limit: 50,
  offset: 0,
  has_more: false,
  next_cursor: null,
  total: 1,
  total_is_estimate: false,
})

describe('the check of answers against the document', () => {
  it('accepts declared answers, and paths outside the document', () => {
    assertDeclared('GET', PATH, answer(200, contact))
    assertDeclared('GET', '/v1/objects/contacts?limit=1', answer(200, list(contact)))
    const error = { type: 'not_found', message: 'contact not found', request_id: 'x' }
    assertDeclared('GET', PATH, answer(404, { error }))
    assertDeclared('GET', '/v1/nothing', answer(200, {}))
  })

  it('refuses another status, type, value or member', () => {
    for (const wrong of [
      answer(201, contact),
      answer(200, contact, 'text/plain'),
      answer(200, { ...contact, version: '1' }),
      answer(200, { ...contact, secret: 'x' }),
      answer(200, { ...contact, created_by: { ...contact.created_by, secret: 'x' } }),
      answer(200, { ...contact, email: undefined }),
      answer(404, { error: { type: 'nothing', message: 'm', request_id: 'x' } }),
    ])
      assert.throws(() => assertDeclared('GET', PATH, wrong), /getContact answers/)
  })

  it('accepts list items without the fields that were not requested, and no other omission', () => {
    const { id, object, email } = contact as Record<string, unknown>
    const narrow = answer(200, list({ id, object, email }))
    assertDeclared('GET', '/v1/objects/contacts?fields=email', narrow)
    assert.throws(() => assertDeclared('GET', '/v1/objects/contacts', narrow), /listContacts answers 200/)
    const wrong = answer(200, list({ id, object, email: 5 }))
    assert.throws(() => assertDeclared('GET', '/v1/objects/contacts?fields=email', wrong), /email/)
  })
})
