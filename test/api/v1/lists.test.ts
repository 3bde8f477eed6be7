import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Scope } from '../../../api/http/scopes.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { settleLists } from '../../support/record-lists.ts'
import { withApi } from '../../support/with-api.ts'

describe('lists of records', () => {
  const on = withApi()
  const send = (method: string, path: string, body?: object, key?: string, headers = {}) =>
    on.api.request(method, path, { ...(body && { body }), ...(key && { key }), headers })
  const done = async (method: string, path: string, body?: object, key?: string) => {
    const answer = await send(method, path, body, key)
    assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const keyWith = async (...scopes: Scope[]) =>
    (await createKey(on.db, on.api.organizationId, { scopes })).key
  const contact = async (values: object = {}): Promise<string> =>
    (await done('POST', '/v1/objects/contacts', { first_name: 'Ada', ...values })).id
  const idsIn = async (path: string): Promise<string[]> =>
    (await done('GET', path)).data.map(({ id }: { id: string }) => id)
  const issuesOf = async (body: object, path = '/v1/lists', method = 'POST') => {
    const answer = await send(method, path, body)
    assert.equal(answer.status, 422, JSON.stringify(answer.body))
    return answer.body.detail.map(({ loc, msg }: { loc: string[]; msg: string }) => [loc.join('.'), msg])
  }

  it('that are static have the records that were added, by their path with filters, sort and cursors', async () => {
    const [a, b, c] = [await contact({ last_name: 'B' }), await contact({ last_name: 'A' }), await contact()]
    const list = await done('POST', '/v1/lists', { entity: 'contacts', name: 'Guests', type: 'static' })
    assert.deepEqual(
      [list.object, list.status, list.member_count, list.query, list.problem],
      ['record_list', 'ready', 0, null, null],
    )
    assert.equal(list.path, `/v1/objects/contacts?list_id=${list.id}`)
    const members = `/v1/lists/${list.id}/members`
    const unknown = randomUUID()
    const added = await done('POST', members, { add: [a, b, unknown], remove: [c] })
    assert.deepEqual(
      [added.object, added.list_id, added.member_count, added.results],
      [
        'list_members',
        list.id,
        2,
        [
          { id: a, status: 'added' },
          { id: b, status: 'added' },
          { id: unknown, status: 'not_found' },
          { id: c, status: 'unchanged' },
        ],
      ],
    )
    assert.deepEqual(await idsIn(`${list.path}&sort=last_name&order=asc`), [b, a])
    assert.deepEqual(await idsIn(`${list.path}&last_name=A`), [b])
    assert.deepEqual(await idsIn(`/v1/objects/contacts?list_id[ne]=${list.id}`), [c])
    const first = await done('GET', `${list.path}&limit=1&count=exact`)
    assert.deepEqual([first.total, first.has_more], [2, true])
    assert.equal((await idsIn(`${list.path}&limit=1&cursor=${first.next_cursor}`)).length, 1)
    assert.deepEqual(await idsIn('/v1/objects/deals?list_id[is_null]=false'), [])

    const removed = await done('POST', members, { remove: [a] })
    assert.deepEqual(removed.results, [{ id: a, status: 'removed' }])
    assert.deepEqual(await idsIn(list.path), [b])
  })

  it('are selections of bulk jobs and exports', async () => {
    const [a] = [await contact(), await contact()]
    const { id } = await done('POST', '/v1/lists', { entity: 'contacts', name: 'Few', type: 'static' })
    await done('POST', `/v1/lists/${id}/members`, { add: [a] })
    const preview = await done('POST', '/v1/objects/contacts/bulk', {
      action: 'delete',
      query: { list_id: id },
    })
    assert.deepEqual([preview.preview.count, preview.preview.record_ids], [1, [a]])
    assert.equal(
      (await send('POST', '/v1/exports', { entity: 'contacts', query: { list_id: id } })).status,
      201,
    )
  })

  it('are changed, and deleted while their records stay', async () => {
    const member = await contact({ lead_status: 'attempted' })
    const list = await done('POST', '/v1/lists', {
      entity: 'contacts',
      name: 'Attempted',
      description: 'By phone',
      type: 'filter',
      query: { lead_status: 'attempted' },
    })
    assert.deepEqual([list.status, list.query], ['filling', { lead_status: 'attempted' }])
    await settleLists(on.db)
    const path = `/v1/lists/${list.id}`
    const filled = await done('GET', path)
    assert.deepEqual([filled.status, filled.member_count], ['ready', 1])
    const renamed = await done('PATCH', path, { name: 'Called', description: null })
    assert.deepEqual(
      [renamed.name, renamed.description, renamed.status, renamed.version],
      ['Called', null, 'ready', 2],
    )
    assert.equal((await send('PATCH', path, { name: 'x' }, undefined, { 'If-Match': '"1"' })).status, 412)
    const changed = await done('PATCH', path, { query: { lead_status: 'new' } })
    assert.equal(changed.status, 'filling')
    await settleLists(on.db)
    assert.deepEqual(await idsIn(list.path), [])
    assert.deepEqual(await done('DELETE', path), { object: 'record_list', id: list.id, deleted: true })
    assert.equal((await send('GET', path)).status, 404)
    assert.equal((await send('GET', `/v1/objects/contacts/${member}`)).status, 200)
    const { data } = await done('GET', '/v1/lists')
    assert.ok(data.every(({ id }: { id: string }) => id !== list.id))
  })

  it('are refused with what to write instead', async () => {
    const of = { entity: 'contacts', name: 'x' }
    const filter = { ...of, type: 'filter' }
    assert.deepEqual(await issuesOf({ ...of }), [['body.type', 'required']])
    assert.deepEqual(await issuesOf(filter), [['body.query', 'is required for a list of the type filter']])
    assert.deepEqual(await issuesOf({ ...of, type: 'static', query: { q: 'x' } }), [
      ['body.query', 'is only of lists of the type filter'],
    ])
    assert.deepEqual(await issuesOf({ ...filter, query: {} }), [
      ['body.query', 'has no filter: every record would be a member'],
    ])
    assert.deepEqual(await issuesOf({ ...filter, query: { q: 'x', sort: 'email', limit: '5' } }), [
      ['body.query.sort', 'is not supported by lists: each reader sorts its members'],
      ['body.query.limit', 'is not supported by lists'],
    ])
    assert.deepEqual(await issuesOf({ ...filter, query: { 'list_id[ne]': randomUUID() } }), [
      ['body.query.list_id[ne]', 'a list cannot depend on other lists: write their filters'],
    ])
    assert.deepEqual(await issuesOf({ ...filter, query: { colour: 'red' } }), [
      ['body.query.colour', 'unknown parameter'],
    ])
    assert.match(
      (await issuesOf({ ...filter, query: { owner_id: 'me' } }))[0].join(),
      /me is the signed-in user/,
    )

    const { id } = await done('POST', '/v1/lists', { ...of, type: 'static' })
    const members = `/v1/lists/${id}/members`
    const record = randomUUID()
    const many = Array.from({ length: 201 }, () => randomUUID())
    assert.deepEqual(await issuesOf({}, members), [['body', 'names 1 to 200 records together']])
    assert.deepEqual(await issuesOf({ add: many }, members), [['body', 'names 1 to 200 records together']])
    assert.deepEqual(await issuesOf({ add: [record], remove: [record] }, members), [
      ['body', 'names a record twice'],
    ])
    assert.deepEqual(await issuesOf({ query: { q: 'x' } }, `/v1/lists/${id}`, 'PATCH'), [
      ['body.query', 'is only of lists of the type filter'],
    ])
    const filtered = await done('POST', '/v1/lists', { ...filter, query: { q: 'x' } })
    const refused = await send('POST', `/v1/lists/${filtered.id}/members`, { add: [record] })
    assert.deepEqual([refused.status, refused.body.error.type], [409, 'conflict'])
    assert.match(refused.body.error.message, /are the records that match its query/)
  })

  it('need the scopes of their kind, and of what their filters read', async () => {
    const list = await done('POST', '/v1/lists', { entity: 'deals', name: 'Of deals', type: 'static' })
    const path = `/v1/lists/${list.id}`
    const [reader, other] = [await keyWith('deals:read'), await keyWith('contacts:write', 'contacts:read')]
    assert.equal((await send('GET', path, undefined, reader)).status, 200)
    for (const [method, below, body] of [
      ['PATCH', '', { name: 'x' }],
      ['DELETE', '', undefined],
      ['POST', '/members', { add: [randomUUID()] }],
    ] as const)
      assert.equal((await send(method, path + below, body, reader)).status, 403, method)
    assert.equal((await send('GET', path, undefined, other)).status, 403)
    assert.equal((await send('GET', '/v1/lists?entity=deals', undefined, other)).status, 403)
    const { data } = await done('GET', '/v1/lists', undefined, other)
    assert.ok(data.every(({ entity }: { entity: string }) => entity === 'contacts'))
    const query = { 'company.industry': 'software' }
    const filter = { entity: 'contacts', name: 'x', type: 'filter', query }
    assert.equal((await send('POST', '/v1/lists', filter, other)).status, 403)
  })

  it('show a filter only to who may read what it reads', async () => {
    const query = { 'company.industry': 'software' }
    const { id } = await done('POST', '/v1/lists', { entity: 'contacts', name: 'x', type: 'filter', query })
    const [some, all] = [
      await keyWith('contacts:read', 'contacts:write'),
      await keyWith('contacts:read', 'companies:read'),
    ]
    const shownBy = async (key: string) => {
      const { data } = await done('GET', '/v1/lists?entity=contacts', undefined, key)
      const [listed] = data.filter((list: { id: string }) => list.id === id)
      return [listed.query, (await done('GET', `/v1/lists/${id}`, undefined, key)).query]
    }
    assert.deepEqual(await shownBy(all), [query, query])
    assert.deepEqual(await shownBy(some), [null, null])
    assert.equal((await done('PATCH', `/v1/lists/${id}`, { name: 'y' }, some)).query, null)
  })

  it('are of no other organization', async () => {
    const list = await done('POST', '/v1/lists', { entity: 'contacts', name: 'Own', type: 'static' })
    await done('POST', `/v1/lists/${list.id}/members`, { add: [await contact()] })
    const stranger = (await createKey(on.db, await createOrganization(on.db))).key
    for (const [method, path, body] of [
      ['GET', `/v1/lists/${list.id}`, undefined],
      ['PATCH', `/v1/lists/${list.id}`, { name: 'x' }],
      ['DELETE', `/v1/lists/${list.id}`, undefined],
      ['POST', `/v1/lists/${list.id}/members`, { remove: [randomUUID()] }],
    ] as const)
      assert.equal((await send(method, path, body, stranger)).status, 404, method)
    assert.deepEqual((await done('GET', list.path, undefined, stranger)).data, [])
  })

  it('have scopes for their events: those of all kinds', async () => {
    const hook = { name: 'x', url: 'https://example.com/x', events: ['list.entered'] }
    const some = await keyWith('webhooks:write', 'contacts:read')
    const refused = await send('POST', '/v1/webhooks/outgoing', hook, some)
    assert.deepEqual([refused.status, refused.body.error.type], [403, 'insufficient_scope'])
    assert.equal((await send('POST', '/v1/webhooks/outgoing', hook)).status, 201)
  })
})
