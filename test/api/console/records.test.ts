import assert from 'node:assert/strict'
import { FILTER_OPERATORS } from '../../../workflows/shared/operators.ts'
import { formOf, textOf, type Visitor, visit } from '../../support/console.ts'
import { EVIL } from '../../support/markup.ts'
import { withApi } from '../../support/with-api.ts'

describe('the records in the console', () => {
  const suite = withApi()
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })

  const create = async (kind: string, body: object) =>
    (await suite.api.request('POST', `/v1/objects/${kind}`, { body })).body
  const find = async (kind: string, id: string) =>
    (await suite.api.request('GET', `/v1/objects/${kind}/${id}`)).body
  const pathIn = ({ location }: { location: string | null }) => location!.split('?')[0]!

  it('are created, changed and deleted by a member, and brought back', async () => {
    await create('companies', { name: 'Analytical Engines' })
    const made = await member.submit('/records/contacts/new', '/records/contacts', {
      first_name: 'Ada',
      last_name: 'Lovelace',
      email: 'ada@example.com',
      company_id: 'analytical engines',
      tags: 'vip\nmaths',
      'address.city': 'London',
      do_not_contact: 'true',
    })
    assert.equal(made.status, 303, textOf(made.html))
    const path = pathIn(made)
    const id = path.split('/').at(-1)!
    const contact = await find('contacts', id)
    assert.deepEqual(
      [contact.tags, contact.address.city, contact.do_not_contact, contact.created_by.type],
      [['vip', 'maths'], 'London', true, 'user'],
    )
    const shown = await member.get(path)
    assert.match(shown.html, /<h1><span dir="auto">Ada Lovelace<\/span><\/h1>/)
    assert.match(shown.html, /Analytical Engines/)
    const saved = await member.submit(`${path}/edit`, path, {
      job_title: 'Countess',
      email: '',
      'address.line1': '1 St',
    })
    assert.equal(saved.location, `${path}?done=saved`)
    const changed = await find('contacts', id)
    assert.deepEqual(
      [
        changed.job_title,
        changed.email,
        changed.address.city,
        changed.address.line1,
        changed.company_id,
        changed.version,
      ],
      ['Countess', null, 'London', '1 St', contact.company_id, 2],
    )
    const deleted = await member.submit(path, `${path}/delete`, {})
    assert.equal(deleted.location, `/records/contacts?done=deleted&id=${id}`)
    assert.equal((await member.get(path)).status, 404)
    const restored = await member.submit(deleted.location!, `${path}/restore`, {})
    assert.equal(restored.location, `${path}?done=restored`)
    assert.equal((await member.get(path)).status, 200)
  })

  it('are refused with the errors at their fields, and what was typed stays', async () => {
    const { status, html } = await owner.submit('/records/deals/new', '/records/deals', {
      name: '',
      amount: 'much',
      currency: 'XXXX',
      company_id: 'Nobody Ltd',
    })
    assert.equal(status, 422)
    assert.match(html, /no record of companies matches/)
    const again = await owner.submit('/records/deals/new', '/records/deals', {
      amount: 'much',
      probability: '101',
    })
    assert.equal(again.status, 422)
    for (const field of ['name', 'amount', 'probability'])
      assert.match(again.html, new RegExp(`href="#f-${field}"`))
    assert.match(again.html, /value="much"/)
  })

  it('are made once by a double click', async () => {
    const { html } = await owner.get('/records/tasks/new')
    const fields = { ...formOf(html, '/records/tasks'), title: 'Twice' }
    const both = await Promise.all([
      owner.post('/records/tasks', fields),
      owner.post('/records/tasks', fields),
    ])
    assert.equal(both[0].location, both[1].location)
    const { body } = await suite.api.request('GET', '/v1/objects/tasks?title=Twice')
    assert.equal(body.data.length, 1)
  })

  it('merge what two tabs change, and ask if both changed the same field', async () => {
    const { id } = await create('companies', {
      name: 'Acme',
      industry: 'Toys',
      website: 'https://acme.example',
    })
    const path = `/records/companies/${id}`
    const tabs = await Promise.all([
      owner.get(`${path}/edit`),
      owner.get(`${path}/edit`),
      owner.get(`${path}/edit`),
    ])
    const [first, second, third] = tabs.map(({ html }) => formOf(html, path))
    assert.equal((await owner.post(path, { ...first!, industry: 'Tools' })).status, 303)
    assert.equal((await owner.post(path, { ...second!, website: 'https://acme.test' })).status, 303)
    const both = await find('companies', id)
    assert.deepEqual([both.industry, both.website], ['Tools', 'https://acme.test'])
    const conflict = await owner.post(path, { ...third!, industry: 'Games' })
    assert.equal(conflict.status, 409)
    assert.match(conflict.html, /was changed meanwhile to “Tools”/)
    assert.match(conflict.html, /value="Games"/)
    assert.equal((await find('companies', id)).industry, 'Tools')
    assert.equal((await owner.post(path, formOf(conflict.html, path))).status, 303)
    assert.equal((await find('companies', id)).industry, 'Games')
  })

  it('keep what a browser cannot send back as it is stored', async () => {
    const task = { title: 'Call', due_at: '2026-10-25T01:30:00Z', body: 'One\r\nTwo' }
    const { id } = await create('tasks', task)
    const path = `/records/tasks/${id}`
    const shown = formOf((await owner.get(`${path}/edit`)).html, path)
    const sent = Object.fromEntries(
      Object.entries(shown).map(([name, value]) => [
        name,
        name === 'due_at' ? String(value).replace(/:00$/, '') : value,
      ]),
    )
    assert.equal((await owner.post(path, { ...sent, title: 'Call back' })).status, 303)
    const { changes } = (await suite.api.request('GET', `/v1/objects/tasks/${id}/history`)).body.data[0]
    assert.deepEqual(Object.keys(changes), ['title'])
    assert.equal((await find('tasks', id)).body, 'One\r\nTwo')

    await suite.api.request('POST', '/v1/custom-fields/tasks', {
      body: { name: 'memo', label: 'Memo', type: 'text' },
    })
    const memo = (await create('tasks', { title: 'Write', custom_fields: { memo: 'One\nTwo' } })).id
    const at = `/records/tasks/${memo}`
    const form = formOf((await owner.get(`${at}/edit`)).html, at)
    await owner.post(at, { ...form, 'custom_fields.memo': 'OneTwo', title: 'Write again' })
    assert.deepEqual((await find('tasks', memo)).custom_fields, { memo: 'One\nTwo' })
  })

  it('are filtered, sorted and paged by the address', async () => {
    for (let i = 0; i < 60; i++) await create('deals', { name: `Deal ${i}`, amount: String(i * 10) })
    const { html } = await owner.get('/records/deals?amount[gte]=100&sort=amount&order=asc')
    assert.match(html, /50 in all/)
    assert.ok(html.indexOf('Deal 10<') < html.indexOf('Deal 59<'))
    assert.match(html, /Amount is at least 100/)
    const [, next] = /href="(\?[^"]*cursor[^"]*)"/.exec(
      (await owner.get('/records/deals?sort=amount&order=asc')).html,
    )!
    const second = await owner.get(`/records/deals${next!.replaceAll('&amp;', '&')}`)
    assert.match(second.html, /Deal 50</)
    assert.doesNotMatch(second.html, /Deal 49</)
    const added = await owner.get('/records/deals?sort=amount&field=stage&operator=ne&value=won')
    assert.equal(added.location, '/records/deals?sort=amount&stage%5Bne%5D=won')
    const refused = await owner.get('/records/deals?amount[contains]=x&nothing=1')
    assert.equal(refused.status, 422)
    assert.match(refused.html, /nothing/)
    assert.match((await owner.get('/records/deals?q=xyz')).html, /Nothing matches/)
    assert.match((await owner.get('/records/deals?columns=lost_reason')).html, />Lost reason</)
  })

  it('offer every operator of lists as a filter', async () => {
    const { html } = await owner.get('/records/contacts?tags[has_not]=customer')
    const [, choice] = /<select[^>]* name="operator"[^>]*>(.*?)<\/select>/s.exec(html)!
    const offered = [...choice!.matchAll(/ value="(\w+)"/g)].map(([, operator]) => operator)
    assert.deepEqual(offered, [...FILTER_OPERATORS])
    assert.match(html, /Tags does not have customer/)
    const added = await owner.get(
      '/records/contacts?field=last_contacted_at&operator=not_since&value=last_30_days',
    )
    assert.equal(added.location, '/records/contacts?last_contacted_at%5Bnot_since%5D=last_30_days')
    assert.match((await owner.get(added.location!)).html, /Last contacted at is before last_30_days/)
  })

  it('show the beginning of a long text in a list, and all of it on its page', async () => {
    const body = 'word '.repeat(1_000)
    const note = await create('notes', { body })
    const list = await owner.get('/records/notes')
    assert.ok(list.html.includes(`${body.slice(0, 200)}…`))
    assert.ok(!list.html.includes(body.slice(0, 201)))
    assert.ok((await owner.get(`/records/notes/${note.id}`)).html.includes(body.trim()))
  })

  it('show their timeline and links, and take notes', async () => {
    const contact = await create('contacts', { first_name: 'Grace', phone: '+12025550100' })
    const company = await create('companies', { name: 'Navy' })
    const path = `/records/contacts/${contact.id}`
    assert.equal(
      (await owner.submit(path, `${path}/note`, { body: 'First\nline' })).location,
      `${path}?done=created`,
    )
    const linked = await owner.submit(path, `${path}/link`, { kind: 'companies', record: 'navy' })
    assert.equal(linked.location, `${path}?done=linked`)
    const task = await owner.submit(`/records/tasks/new?for=contact:${contact.id}`, '/records/tasks', {
      title: 'Call',
    })
    assert.equal(task.location, `${path}?done=created`)
    const { html } = await owner.get(path)
    for (const text of ['First\nline', 'Navy', 'Call', 'Created by a key'])
      assert.ok(html.includes(text), text)
    const unlinked = await owner.submit(path, `${path}/unlink`, { kind: 'companies', id: company.id })
    assert.equal(unlinked.location, `${path}?done=unlinked`)
    assert.equal((await find('contacts', contact.id)).company_id, null)
  })

  it('show markup in every field as text, and no link that runs code', async () => {
    for (const kind of ['contacts', 'companies', 'deals', 'tasks', 'notes', 'activities']) {
      const { body: schema } = await suite.api.request('GET', `/v1/objects/${kind}/schema`)
      const texts = schema.fields.filter(
        (field: { type: string; read_only: boolean; max: number }) =>
          field.type === 'text' && !field.read_only && field.max > 100,
      )
      const values = Object.fromEntries(texts.map(({ name }: { name: string }) => [name, EVIL]))
      const { id } = await create(kind, {
        ...(kind === 'activities' && { type: 'call' }),
        ...values,
        tags: [EVIL],
        custom_fields: { evil: EVIL },
      })
      assert.ok(id, kind)
      const columns = texts.map(({ name }: { name: string }) => `columns=${name}`).join('&')
      for (const path of [
        `/${id}`,
        `/${id}/edit`,
        `?${columns}&columns=tags`,
        `?q=${encodeURIComponent(EVIL)}`,
      ]) {
        const { status, html } = await owner.get(`/records/${kind}${path}`)
        assert.equal(status, 200, `${kind}${path}: ${textOf(html)}`)
        assert.match(html, /&lt;script>alert\(1\)/)
        assert.doesNotMatch(html, /<script>alert|<img/)
      }
    }
  })

  it('of other organizations do not exist', async () => {
    const { status, html } = await owner.get('/records/contacts/01890a5d-ac96-774b-bcce-b302099a8057')
    assert.equal(status, 404)
    assert.match(html, /does not exist/)
    assert.equal((await owner.get('/records/unicorns')).status, 404)
  })
})
