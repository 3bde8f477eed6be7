import assert from 'node:assert/strict'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { mergeableKinds } from '../../../workflows/shared/record-kinds.ts'
import { formOf, textOf, type Visitor, visit } from '../../support/console.ts'
import { assertEscaped, EVIL } from '../../support/markup.ts'
import { withApi } from '../../support/with-api.ts'

describe('duplicates and deleted records in the console', () => {
  const suite = withApi()
  let member: Visitor

  before(async () => {
    member = await visit(suite.db, suite.api, 'member')
  })

  const create = async (kind: string, body: object) =>
    (await suite.api.request('POST', `/v1/objects/${kind}`, { body })).body
  const find = (kind: string, id: string) => suite.api.request('GET', `/v1/objects/${kind}/${id}`)

  it('are merged after a look at both side by side', async () => {
    const kept = await create('contacts', { first_name: 'Ada', last_name: EVIL, tags: ['vip'] })
    const from = await create('contacts', {
      first_name: 'Augusta',
      last_name: EVIL,
      job_title: 'Countess',
      tags: [EVIL],
      custom_fields: { tier: 'gold' },
    })
    // A name is compared with the first name: these two have the same.
    await create('contacts', { first_name: 'Ada', last_name: EVIL, phone: '+12025550123' })
    const list = await member.get('/records/contacts/duplicates?by=name')
    assertEscaped(list.html)
    assert.match(list.html, /2 records/)
    assert.match(list.html, /href="\/records\/contacts\/merge\?record=/)
    assert.match(
      (await member.get('/records/contacts/duplicates')).html,
      /No two contacts have the same email/,
    )

    const path = `/records/contacts/merge?record=${kept.id}&from=${from.id}`
    const page = await member.get(path)
    assertEscaped(page.html)
    for (const text of ['Augusta', 'Countess', 'gold', '>different<'])
      assert.ok(page.html.includes(text), text)
    const merged = await member.submit(path, '/records/contacts/merge', {})
    assert.equal(merged.location, `/records/contacts/${kept.id}?done=merged`, textOf(merged.html))
    const { body } = await find('contacts', kept.id)
    assert.deepEqual([body.first_name, body.job_title, body.tags.length], ['Ada', 'Countess', 2])
    assert.equal((await find('contacts', from.id)).status, 404)
    assert.equal((await member.get(path)).status, 404)
  })

  it('are not merged if the record changed since it was looked at', async () => {
    const [kept, from] = [
      await create('companies', { name: 'Acme', domain: 'acme.example' }),
      await create('companies', { name: 'Acme Inc' }),
    ]
    const path = `/records/companies/merge?record=${kept.id}&from=${from.id}`
    const form = formOf((await member.get(path)).html, '/records/companies/merge')
    await suite.api.request('PATCH', `/v1/objects/companies/${kept.id}`, { body: { industry: 'Toys' } })
    const late = await member.post('/records/companies/merge', form)
    assert.equal(late.status, 412)
    assert.match(late.html, /role="alert"/)
    assert.equal((await find('companies', from.id)).status, 200)
    const again = await member.post('/records/companies/merge', formOf(late.html, '/records/companies/merge'))
    assert.equal(again.location, `/records/companies/${kept.id}?done=merged`)
  })

  it('of each kind have a page that compares two, and one of those that are deleted', async () => {
    const minimal: Record<string, object> = {
      contacts: { first_name: EVIL },
      companies: { name: EVIL },
      deals: { name: EVIL },
      tasks: { title: EVIL },
      notes: { body: EVIL },
      activities: { type: 'call', subject: EVIL },
      products: { name: EVIL },
      line_items: { name: EVIL, quantity: 1, unit_price: '1' },
    }
    const { id: deal } = await create('deals', { name: 'With items' })
    minimal.line_items = { ...minimal.line_items, deal_id: deal }
    for (const kind of kindNames) {
      assert.match((await member.get(`/records/${kind}/deleted`)).html, /Nothing is deleted/, kind)
      assert.match((await member.get(`/records/${kind}`)).html, new RegExp(`/records/${kind}/deleted`))
    }
    for (const kind of mergeableKinds) {
      const [one, other] = [await create(kind, minimal[kind]!), await create(kind, minimal[kind]!)]
      assert.ok(one.id && other.id, `${kind}: ${JSON.stringify(one)}`)
      const compared = await member.get(`/records/${kind}/merge?record=${one.id}&from=${other.id}`)
      assert.equal(compared.status, 200, textOf(compared.html))
      assertEscaped(compared.html)
      assert.equal((await suite.api.request('DELETE', `/v1/objects/${kind}/${other.id}`)).status, 200)
      const deleted = await member.get(`/records/${kind}/deleted`)
      assertEscaped(deleted.html)
      const restored = await member.submit(
        `/records/${kind}/deleted`,
        `/records/${kind}/${other.id}/restore`,
        {},
      )
      assert.equal(restored.location, `/records/${kind}/${other.id}?done=restored`)
      assert.match((await member.get(`/records/${kind}/deleted`)).html, /Nothing is deleted/)
    }
  })
})
