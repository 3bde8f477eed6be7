import assert from 'node:assert/strict'
import { recordQuery } from '../../../../api/v1/record-query.ts'
import type { KindName } from '../../../../db/model/records/kind.ts'
import { createSchema } from '../../../../db/model/records/schemas.ts'

/** The beginning of the hint for a query or a body that is refused. */
function hintOf(result: { error?: { issues: object[] } | undefined }): string | undefined {
  const [issue] = result.error!.issues as { params?: { hint?: string } }[]
  return issue!.params?.hint?.split('?')[0]
}
const inQuery = (kind: KindName, query: object) => hintOf(recordQuery(kind).safeParse(query))
const inBody = (kind: KindName, body: object) => hintOf(createSchema(kind).safeParse(body))

describe('hints for the words of other systems', () => {
  for (const [kind, written, field] of [
    ['contacts', 'mobile', 'mobile_phone'],
    ['contacts', 'title', 'job_title'],
    ['contacts', 'name', 'first_name and last_name'],
    ['contacts', 'company', 'company_id'],
    ['contacts', 'owner', 'owner_id'],
    ['contacts', 'unsubscribed', 'do_not_contact'],
    ['companies', 'employees', 'employee_count'],
    ['deals', 'value', 'amount'],
    ['deals', 'close_date', 'expected_close_date'],
    ['tasks', 'deadline', 'due_at'],
  ] as const)
    it(`name the field for ${written} of ${kind}`, () => {
      assert.equal(inQuery(kind, { [written]: 'x' }), `did you mean ${field}`)
      const required = kind === 'tasks' ? { title: 'x' } : { name: 'x' }
      const body = kind === 'contacts' ? { first_name: 'x' } : required
      assert.equal(inBody(kind, { ...body, [written]: 'x' }), `did you mean ${field}`)
    })

  it('name a part of the address only where it can be written', () => {
    assert.equal(inBody('companies', { name: 'x', zip: '1' }), 'did you mean address.postal_code')
    assert.match(inQuery('companies', { zip: '1' })!, /^filters are /)
  })

  for (const [written, control] of [
    ['page', 'offset, or cursor with the next_cursor of the page before'],
    ['per_page', 'limit'],
    ['pageSize', 'limit'],
    ['search', 'q'],
    ['sort_by', 'sort and order'],
  ] as const)
    it(`name the parameter for ${written}`, () => {
      assert.equal(inQuery('contacts', { [written]: '2' }), `did you mean ${control}`)
    })

  it('write the direction of a sort before its field', () => {
    for (const [sort, written] of [
      ['+amount', 'sort=amount&order=asc'],
      ['amount:desc', 'sort=-amount'],
      ['stage,amount:desc', 'sort=-amount'],
    ] as const)
      assert.equal(inQuery('deals', { sort }), `write ${written}`)
    assert.equal(inQuery('deals', { sort: '-price' }), 'did you mean amount')
  })
})
