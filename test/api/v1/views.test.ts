import assert from 'node:assert/strict'
import type { Scope } from '../../../api/http/scopes.ts'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

describe('views', () => {
  const on = withApi()
  const send = (method: string, path: string, body?: object, key?: string, headers = {}) =>
    on.api.request(method, path, { ...(body && { body }), ...(key && { key }), headers })
  const create = async (body: object, key?: string) => {
    const answer = await send('POST', '/v1/views', body, key)
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const keyWith = async (...scopes: Scope[]) =>
    (await createKey(on.db, on.api.organizationId, { scopes })).key
  const names = async (key?: string, search = '') => {
    const { body } = await send('GET', `/v1/views${search}`, undefined, key)
    return body.data.map(({ name }: { name: string }) => name)
  }

  it('lead to the list that they save', async () => {
    for (const [name, stage, amount] of [
      ['Engine', 'proposal', '10'],
      ['Wheel', 'proposal', '30'],
      ['Door', 'lead', '20'],
    ])
      await send('POST', '/v1/objects/deals', { name, stage, amount })
    const view = await create({
      entity: 'deals',
      name: 'Open proposals',
      query: { 'stage[in]': 'proposal', sort: 'amount', order: 'asc' },
      fields: ['name', 'amount'],
    })
    assert.equal(view.shared, false)
    const { body } = await send('GET', view.path)
    assert.deepEqual(
      body.data.map(({ id: _, ...shown }: { id: string }) => shown),
      [
        { object: 'deal', name: 'Engine', amount: '10.00' },
        { object: 'deal', name: 'Wheel', amount: '30.00' },
      ],
    )
  })

  it('are visible to their author, or to all that may read the kind', async () => {
    const own = await create({ entity: 'contacts', name: 'Own' })
    await create({ entity: 'contacts', name: 'Everybody', shared: true })
    await create({ entity: 'notes', name: 'Of notes', shared: true })
    const other = await keyWith('contacts:write')
    assert.deepEqual(await names(other), ['Everybody'])
    assert.deepEqual(await names(undefined, '?entity=contacts'), ['Everybody', 'Own'])
    assert.equal((await send('GET', '/v1/views?entity=notes', undefined, other)).status, 403)
    for (const [method, body] of [['GET'], ['PATCH', { name: 'x' }], ['DELETE']] as const)
      assert.equal((await send(method, `/v1/views/${own.id}`, body, other)).status, 404, method)
  })

  it('are changed and deleted by their author, and by others if they are shared', async () => {
    const view = await create({ entity: 'contacts', name: 'Shared', shared: true })
    const path = `/v1/views/${view.id}`
    const writer = await keyWith('contacts:write')
    const reader = await keyWith('contacts:read')
    assert.equal((await send('PATCH', path, { name: 'x' }, reader)).status, 403)
    const renamed = await send('PATCH', path, { name: 'Renamed', query: { q: 'ada' } }, writer, {
      'If-Match': '"1"',
    })
    assert.equal(renamed.status, 200, JSON.stringify(renamed.body))
    assert.deepEqual(
      [renamed.body.name, renamed.body.version, renamed.body.path],
      ['Renamed', 2, '/v1/objects/contacts?q=ada'],
    )
    assert.equal((await send('PATCH', path, { name: 'x' }, writer, { 'If-Match': '"1"' })).status, 412)
    const hidden = await send('PATCH', path, { shared: false }, writer)
    assert.deepEqual([hidden.status, hidden.body.error.param], [409, 'shared'])
    assert.equal((await send('DELETE', path, undefined, writer)).status, 200)
    assert.equal((await send('GET', path)).status, 404)
  })

  it('refuse what the list would refuse, all at once', async () => {
    const { status, body } = await send('POST', '/v1/views', {
      entity: 'deals',
      name: '',
      query: { limit: 5, colour: 'red', sort: 'size' },
      fields: ['nmae'],
    })
    assert.equal(status, 422)
    const locs = (detail: { loc: string[] }[]) => detail.map(({ loc }) => loc.join('.')).toSorted()
    assert.ok(locs(body.detail).includes('body.name'), JSON.stringify(body.detail))
    const again = await send('POST', '/v1/views', {
      entity: 'deals',
      name: 'x',
      query: { limit: 5, colour: 'red', sort: 'size' },
      fields: ['nmae'],
    })
    assert.deepEqual(locs(again.body.detail), [
      'body.fields.0',
      'body.query.colour',
      'body.query.limit',
      'body.query.sort',
    ])
    const view = await create({ entity: 'deals', name: 'x' })
    const patched = await send('PATCH', `/v1/views/${view.id}`, {
      query: { colour: 'red' },
      fields: ['nmae'],
    })
    assert.equal(patched.status, 422)
    assert.deepEqual(locs(patched.body.detail), ['body.fields.0', 'body.query.colour'])
  })
})
