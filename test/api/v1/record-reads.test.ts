import assert from 'node:assert/strict'
import type { Scope } from '../../../api/http/scopes.ts'
import { createKey } from '../../support/api.ts'
import { createMember } from '../../support/database.ts'
import { type App, signInAs } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('reads of records', () => {
  const on = withApi()
  const get = (path: string, key?: string) => on.api.request('GET', `/v1/objects/${path}`, key ? { key } : {})
  const create = async (kind: string, body: object) => {
    const answer = await on.api.request('POST', `/v1/objects/${kind}`, { body })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const keyWith = async (...scopes: Scope[]) =>
    (await createKey(on.db, on.api.organizationId, { scopes })).key
  const names = async (path: string) => {
    const answer = await get(path)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body.data.map(({ name }: { name: string }) => name)
  }
  const issues = async (path: string, key?: string) => {
    const { status, body } = await get(path, key)
    assert.equal(status, 422, JSON.stringify(body))
    return body.detail
  }

  it('sort by several fields, each in its direction, page by page', async () => {
    for (const [name, amount, lost_reason] of [
      ['a', '1', 'price'],
      ['b', '2', 'price'],
      ['c', null, 'price'],
      ['d', '3', null],
      ['e', '4', 'time'],
    ])
      await create('deals', { name, amount, lost_reason, tags: ['sorted'] })
    const walk = async (sort: string) => {
      const found: string[] = []
      let cursor = ''
      do {
        const { status, body } = await get(`deals?tags[has]=sorted&sort=${sort}&limit=2${cursor}`)
        assert.equal(status, 200, JSON.stringify(body))
        found.push(...body.data.map(({ name }: { name: string }) => name))
        cursor = body.next_cursor && `&cursor=${body.next_cursor}`
      } while (cursor)
      return found.join('')
    }
    assert.equal(await walk('lost_reason,-amount'), 'baced')
    assert.equal(await walk('-lost_reason,amount'), 'eabcd')
    assert.equal(await walk('-amount'), 'edbac')
    assert.equal(await walk('amount&order=asc'), 'abdec')
    const { body } = await get('deals?tags[has]=sorted&sort=lost_reason,-amount&limit=2')
    const other = await get(
      `deals?tags[has]=sorted&sort=lost_reason,amount&limit=2&cursor=${body.next_cursor}`,
    )
    assert.equal(other.status, 400)
  })

  it('give a cursor that they take, whatever the sorted texts are', async () => {
    const long = '\u{1f600}'.repeat(120) + '\u0001'.repeat(100)
    for (const n of [1, 2])
      await create('contacts', {
        first_name: long,
        last_name: long,
        job_title: long,
        lead_source: `${n}`,
        tags: ['long'],
      })
    const path = 'contacts?tags[has]=long&sort=first_name,-last_name,job_title&limit=1'
    const first = await get(path)
    const second = await get(`${path}&cursor=${first.body.next_cursor}`)
    assert.equal(second.status, 200, JSON.stringify(second.body))
    assert.notEqual(second.body.data[0].id, first.body.data[0].id)
  })

  it('refuse sorts that contradict themselves, or of too many fields', async () => {
    const one = async (query: string) => {
      const [issue, ...more] = await issues(`deals?${query}`)
      assert.deepEqual(more, [])
      return [issue.loc[1], issue.msg]
    }
    assert.deepEqual(await one('sort=stage,-amount&order=desc'), [
      'order',
      'is for a sort by one field without a sign',
    ])
    assert.deepEqual(await one('sort=-amount&order=asc'), [
      'order',
      'is for a sort by one field without a sign',
    ])
    assert.deepEqual(await one('sort=name,stage,amount,id'), ['sort', 'at most 3 fields'])
    assert.deepEqual(await one('sort=name,-name'), ['sort', 'names a field twice'])
    assert.deepEqual(await one('sort=name,tags'), ['sort', 'is not a field to sort by'])
  })

  it('sort texts as people expect', async () => {
    for (const last_name of ['Zebra', 'Apfel', 'Äpfel', 'apfelbaum', 'Birne'])
      await create('contacts', { last_name, first_name: last_name, tags: ['fruit'] })
    for (const field of ['last_name', 'first_name']) {
      const { body } = await get(`contacts?tags[has]=fruit&sort=${field}&order=asc`)
      assert.deepEqual(
        body.data.map(({ last_name }: { last_name: string }) => last_name),
        ['Apfel', 'Äpfel', 'apfelbaum', 'Birne', 'Zebra'],
        field,
      )
      // The range of a filter is that of the sort.
      const upTo = await get(`contacts?tags[has]=fruit&${field}[lt]=birne&count=exact`)
      assert.equal(upTo.body.total, 3, field)
    }
  })

  describe('one hop away', () => {
    let companyId: string
    before(async () => {
      const soft = await create('companies', {
        name: 'Soft',
        industry: 'software',
        custom_fields: { tier: 'gold' },
      })
      companyId = soft.id
      const food = await create('companies', { name: 'Food', industry: 'food' })
      await create('deals', { name: 'soft deal', company_id: soft.id, amount: '10', tags: ['hop'] })
      await create('deals', { name: 'food deal', company_id: food.id, amount: '20', tags: ['hop'] })
      await create('deals', { name: 'lone deal', tags: ['hop'] })
    })
    const found = async (filter: string) => (await names(`deals?tags[has]=hop&${filter}`)).sort()

    it('filter by a field of the record that a reference names', async () => {
      assert.deepEqual(await found('company.industry=Software'), ['soft deal'])
      assert.deepEqual(await found('company.industry[in]=software,food'), ['food deal', 'soft deal'])
      assert.deepEqual(await found('company.industry[ne]=software'), ['food deal', 'lone deal'])
      assert.deepEqual(await found('company.custom_fields.tier=gold'), ['soft deal'])
      assert.deepEqual(await found('company.custom_fields.tier[is_null]=true'), ['food deal', 'lone deal'])
      assert.deepEqual(await found('company.created_at[gte]=today'), ['food deal', 'soft deal'])
      const any = await names('deals?company.name=Food&company.industry=software&match=any&sort=name')
      assert.deepEqual(any, ['soft deal', 'food deal'])
    })

    it('filter by a field of associated records', async () => {
      const of = async (filter: string) =>
        (await names(`companies?industry[in]=software,food&${filter}`)).sort()
      assert.deepEqual(await of('associations.deals.amount[gt]=15'), ['Food'])
      assert.deepEqual(await of('associations.deals.amount[is_null]=false'), ['Food', 'Soft'])
      assert.deepEqual(await of('associations.deals.name[nin]=soft deal'), ['Food'])
      assert.deepEqual(await names(`deals?associations.companies=${companyId}`), ['soft deal'])
    })

    it('need the scope to read the other kind', async () => {
      const key = await keyWith('deals:read')
      for (const filter of ['company.industry=software', 'associations.companies.name[is_null]=true']) {
        const { status, body } = await get(`deals?${filter}`, key)
        assert.equal(status, 403, filter)
        assert.match(body.error.message, /companies:read/)
      }
      const view = { entity: 'deals', name: 'x', query: { 'company.industry': 'software' } }
      const writer = await keyWith('deals:write')
      assert.equal((await on.api.request('POST', '/v1/views', { body: view, key: writer })).status, 403)
      assert.equal(
        (await on.api.request('POST', '/v1/exports', { body: { entity: 'deals', query: view.query }, key }))
          .status,
        403,
      )
    })

    it('refuse what the other kind refuses, with the parameter as sent', async () => {
      const one = async (query: string) => {
        const [issue] = await issues(`deals?${query}`)
        return [issue.loc[1], issue.msg]
      }
      assert.deepEqual(await one('company.nope=1'), ['company.nope', 'unknown parameter'])
      assert.deepEqual(await one('company.type=nope'), ['company.type', 'is not a value of type'])
      assert.deepEqual(await one('company.employee_count[gt]=x'), [
        'company.employee_count[gt]',
        'must be an integer, at most 2147483647',
      ])
      assert.deepEqual(await one('parent_company.name=x'), ['parent_company.name', 'unknown parameter'])
      const [deep] = await issues('deals?company.associations.contacts[is_null]=true')
      assert.match(deep.hint, /fields of a related record itself/)
      await on.api.request('POST', '/v1/custom-fields/companies', {
        body: { name: 'pin', type: 'text', sensitive: true },
      })
      assert.match((await one('company.custom_fields.pin=1'))[1], /is sensitive/)
      assert.match((await one('associations.companies.custom_fields.pin[contains]=1'))[1], /is sensitive/)
    })
  })

  describe('expand', () => {
    let deal: { id: string; company_id: string }
    let company: { id: string }
    let userId: string
    before(async () => {
      userId = await createMember(on.db, on.api.organizationId, 'Grace')
      company = await create('companies', { name: 'Expanded' })
      const contact = await create('contacts', { first_name: 'Ada', company_id: company.id })
      deal = await create('deals', {
        name: 'expanded',
        company_id: company.id,
        owner_id: userId,
        associations: [{ object: 'contact', id: contact.id }],
      })
    })

    it('shows what a record refers to and is associated with', async () => {
      const { status, body } = await get(`deals/${deal.id}?expand=company,contact,owner,contacts,notes`)
      assert.equal(status, 200, JSON.stringify(body))
      const { company: shown, contact, owner, contacts, notes } = body.expanded
      assert.deepEqual([shown.name, contact.first_name], ['Expanded', 'Ada'])
      assert.deepEqual(owner, { object: 'user', id: userId, name: 'Grace', role: 'member' })
      assert.deepEqual(
        [contacts.data.map((one: { first_name: string }) => one.first_name), contacts.has_more],
        [['Ada'], false],
      )
      assert.deepEqual(notes, { data: [], has_more: false })
    })

    it('is the same in lists and lists of associated records, beside chosen fields', async () => {
      for (const path of ['deals?name=expanded&', `companies/${company.id}/deals?`]) {
        const { body } = await get(`${path}expand=company&fields=name`)
        const [{ object, id, name, expanded, ...others }] = body.data
        assert.deepEqual([object, id, name, expanded.company.name], ['deal', deal.id, 'expanded', 'Expanded'])
        assert.deepEqual(others, {})
      }
    })

    it('shows at most ten of a kind, the newest, and says that there are more', async () => {
      const firm = await create('companies', { name: 'Large' })
      for (let n = 0; n < 12; n++) await create('contacts', { first_name: `c${n}`, company_id: firm.id })
      const { body } = await get(`companies/${firm.id}?expand=contacts`)
      const { data, has_more } = body.expanded.contacts
      assert.deepEqual([data.length, data[0].first_name, has_more], [10, 'c11', true])
      assert.deepEqual((await issues('companies?expand=contacts&limit=51'))[0].loc[1], 'limit')
    })

    it('needs the scope of each kind, and refuses unknown names', async () => {
      const key = await keyWith('deals:read')
      for (const path of [`deals/${deal.id}?expand=company`, 'deals?expand=contacts'])
        assert.equal((await get(path, key)).status, 403, path)
      assert.equal((await get(`deals/${deal.id}?expand=owner`, key)).status, 200)
      assert.match((await issues('deals?expand=compny'))[0].hint, /did you mean company\?/)
      assert.match((await issues('deals?expand=a,b,c,d,e,f'))[0].msg, /at most 5/)
    })
  })

  describe('warnings of a creation', () => {
    it('name the records that have its email, domain or phone', async () => {
      const first = await create('contacts', { email: 'Twin@x.io', phone: '+4930901820' })
      assert.equal(first.warnings, undefined)
      const second = await create('contacts', { email: 'twin@x.io', mobile_phone: '+4930901820' })
      assert.deepEqual(
        second.warnings.map(({ field, record_ids }: { field: string; record_ids: string[] }) => [
          field,
          record_ids,
        ]),
        [
          ['email', [first.id]],
          ['mobile_phone', [first.id]],
        ],
      )
      await create('companies', { name: 'One', domain: 'twin.io' })
      const company = await create('companies', { name: 'Two', domain: 'www.twin.io' })
      assert.deepEqual(company.warnings[0].code, 'domain_exists')
      assert.equal((await get(`companies/${company.id}`)).body.warnings, undefined)
    })

    it('are by organization, and not for deleted records', async () => {
      const gone = await create('contacts', { email: 'gone@x.io' })
      await on.api.request('DELETE', `/v1/objects/contacts/${gone.id}`)
      assert.equal((await create('contacts', { email: 'gone@x.io' })).warnings, undefined)
    })

    it('and duplicates are found by phone, whichever field has it', async () => {
      const { status, body } = await get('contacts/duplicates?by=phone')
      assert.equal(status, 200, JSON.stringify(body))
      assert.deepEqual(
        body.data.map(({ value, count }: { value: string; count: number }) => [value, count]),
        [['+4930901820', 2]],
      )
    })
  })

  describe('history', () => {
    it('has names, and is filtered by a field', async () => {
      const owner = await createMember(on.db, on.api.organizationId, 'Owner')
      const firm = await create('companies', { name: 'Named Ltd' })
      const { id } = await create('deals', { name: 'h', owner_id: owner, custom_fields: { tier: 'a' } })
      const patch = (body: object) => on.api.request('PATCH', `/v1/objects/deals/${id}`, { body })
      await patch({ company_id: firm.id })
      await patch({ custom_fields: { tier: 'b', other: 1 } })
      await patch({ custom_fields: { other: 2 } })
      const history = async (query: string, key?: string) => {
        const { status, body } = await get(`deals/${id}/history?order=asc${query}`, key)
        assert.equal(status, 200, JSON.stringify(body))
        return body
      }
      const { data } = await history('')
      const key = data[0].actor.id
      assert.equal(data.length, 4)
      assert.deepEqual([data[0].names[owner], typeof data[0].names[key]], ['Owner', 'string'])
      assert.equal(data[1].names[firm.id], 'Named Ltd')
      const onlyDeals = await keyWith('deals:read')
      assert.equal((await history('', onlyDeals)).data[1].names[firm.id], undefined)
      const versions = async (field: string) => {
        const { data, total } = await history(`&field=${field}`)
        assert.equal(total, data.length)
        return data.map(({ version }: { version: number }) => version)
      }
      assert.deepEqual(await versions('company_id'), [2])
      assert.deepEqual(await versions('custom_fields.tier'), [1, 3])
      assert.deepEqual(await versions('custom_fields.other'), [3, 4])
      const [issue] = await issues(`deals/${id}/history?field=stge`)
      assert.match(issue.hint, /did you mean stage\?/)
    })
  })

  describe('me', () => {
    let app: App
    let userId: string
    before(async () => {
      userId = await createMember(on.db, on.api.organizationId, 'Me', 'member')
      app = await signInAs(on.db, on.api, userId)
      await create('tasks', { title: 'mine', assignee_id: userId })
      await create('tasks', { title: 'nobody’s' })
    })

    it('is the signed-in user', async () => {
      const { status, body } = await app('GET', '/v1/objects/tasks?assignee_id=me')
      assert.equal(status, 200, JSON.stringify(body))
      assert.deepEqual(
        body.data.map(({ title }: { title: string }) => title),
        ['mine'],
      )
      const others = await app('GET', '/v1/objects/tasks?assignee_id[ne]=me')
      assert.deepEqual(
        others.body.data.map(({ title }: { title: string }) => title),
        ['nobody’s'],
      )
    })

    it('is refused for a key, which is nobody', async () => {
      const [issue] = await issues('tasks?assignee_id=me')
      assert.deepEqual([issue.loc[1], issue.input], ['assignee_id', 'me'])
      assert.match(issue.hint, /GET \/v1\/users/)
    })
  })

  describe('deleted records', () => {
    it('are listed until they are purged, unless they were merged', async () => {
      const kept = await create('notes', { body: 'kept' })
      const gone = await create('notes', { body: 'gone' })
      const loser = await create('notes', { body: 'loser' })
      await on.api.request('DELETE', `/v1/objects/notes/${gone.id}`)
      await on.api.request('POST', `/v1/objects/notes/${kept.id}/merge`, { body: { from: loser.id } })
      const { status, body } = await get('notes?deleted=true&fields=body&q=go')
      assert.equal(status, 200, JSON.stringify(body))
      assert.equal(body.total, 1)
      assert.deepEqual([body.data[0].body, typeof body.data[0].deleted_at], ['gone', 'string'])
      const all = await get('notes?deleted=true')
      assert.deepEqual(
        all.body.data.map(({ id }: { id: string }) => id),
        [gone.id],
      )
      assert.equal((await on.api.request('POST', `/v1/objects/notes/${gone.id}/restore`)).status, 200)
      assert.deepEqual((await get('notes?deleted=true')).body.data, [])
    })

    it('need the scope of a restore', async () => {
      const { status, body } = await get('notes?deleted=true', await keyWith('notes:read'))
      assert.equal(status, 403)
      assert.match(body.error.message, /notes:write/)
      const view = { entity: 'notes', name: 'x', query: { deleted: 'true' } }
      assert.equal((await on.api.request('POST', '/v1/views', { body: view })).status, 422)
    })
  })
})
