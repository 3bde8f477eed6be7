import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { until } from '../../support/until.ts'
import { withDeliveries } from '../../support/with-deliveries.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Entry = { object: string; type: string; at: string; data: any }

describe('the timeline of a record', () => {
  const on = withDeliveries()
  const timeline = (id: string, search = '', key?: string) =>
    on.api.request('GET', `/v1/objects/contacts/${id}/timeline${search}`, key ? { key } : {})
  const create = async (kind: string, body: object) => {
    const answer = await on.api.request('POST', `/v1/objects/${kind}`, { body })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const linked = (contact: { id: string }) => ({ associations: [{ object: 'contacts', id: contact.id }] })
  const types = (entries: Entry[]) => entries.map(({ type }) => type)

  it('has what was written about it, its changes, runs and deliveries, newest first', async () => {
    await on.createWebhook({ events: ['contact.updated'] })
    const spec = `name: On change
trigger: {type: event, events: [contact.updated]}
nodes: {wait: {type: delay, config: {for: 1ms}}}`
    const { body: workflow } = await on.api.request('POST', '/v1/workflows', { body: { spec } })
    assert.ok(workflow.workflow_id, JSON.stringify(workflow))
    assert.equal((await on.api.request('POST', `/v1/workflows/${workflow.workflow_id}/activate`)).status, 200)
    const contact = await create('contacts', { first_name: 'Ada' })
    const note = await create('notes', { body: 'Called', ...linked(contact) })
    const call = { type: 'call', subject: 'First call', occurred_at: '2020-01-31T09:00:00Z' }
    const activity = await create('activities', { ...call, ...linked(contact) })
    const deal = await create('deals', { name: 'Engine', ...linked(contact) })
    await on.api.request('PATCH', `/v1/objects/contacts/${contact.id}`, { body: { last_name: 'Lovelace' } })
    const all: Entry[] = await until(async () => {
      const { status, body } = await timeline(contact.id)
      assert.equal(status, 200, JSON.stringify(body))
      return types(body.data).includes('run') && types(body.data).includes('delivery') && body.data
    })
    assert.deepEqual(types(all).toSorted(), [
      'activity',
      'change',
      'change',
      'deal',
      'delivery',
      'note',
      'run',
    ])
    assert.deepEqual(
      all.map(({ at }) => at),
      all
        .map(({ at }) => at)
        .toSorted()
        .toReversed(),
    )
    const one = (type: string) => all.find((entry) => entry.type === type)!.data
    assert.deepEqual(
      [one('note').id, one('note').body, one('note').association.label],
      [note.id, 'Called', null],
    )
    assert.equal(one('deal').id, deal.id)
    assert.deepEqual([all.at(-1)!.data.id, all.at(-1)!.at], [activity.id, '2020-01-31T09:00:00.000Z'])
    assert.deepEqual(one('change').changes.last_name, { from: null, to: 'Lovelace' })
    assert.deepEqual([one('run').workflow_id, one('run').record_id], [workflow.workflow_id, contact.id])
    assert.deepEqual([one('delivery').event, typeof one('delivery').status], ['contact.updated', 'string'])
  })

  it('is read page by page, without a gap and without a repetition', async () => {
    const contact = await create('contacts', { first_name: 'Grace' })
    // Entries of the same time, of several types.
    const occurred_at = '2026-01-31T09:00:00Z'
    for (let n = 0; n < 4; n++)
      await create('activities', { type: 'call', subject: `Call ${n}`, occurred_at, ...linked(contact) })
    for (let n = 0; n < 3; n++) await create('notes', { body: `Note ${n}`, ...linked(contact) })
    await on.db.system('notes').update({ created_at: occurred_at })
    await on.db.system('record_history').where({ record_id: contact.id }).update({ at: occurred_at })
    const whole = (await timeline(contact.id)).body
    assert.ok(whole.data, JSON.stringify(whole))
    assert.deepEqual(
      [whole.data.length, whole.has_more, whole.next_cursor, whole.total],
      [8, false, null, null],
    )
    for (const limit of [1, 2, 3, 5]) {
      const read: Entry[] = []
      let search = `?limit=${limit}`
      for (;;) {
        const { body } = await timeline(contact.id, search)
        read.push(...body.data)
        if (!body.has_more) break
        search = `?limit=${limit}&cursor=${body.next_cursor}`
      }
      assert.deepEqual(read, whole.data, `${limit} a page`)
    }
    const { body } = await timeline(contact.id, '?limit=1')
    const other = await timeline(contact.id, `?types=note&cursor=${body.next_cursor}`)
    assert.deepEqual([other.status, other.body.error.type], [400, 'invalid_request'])
    assert.equal((await timeline(contact.id, '?cursor=x')).status, 400)
  })

  it('shows what is asked for, as far as the key may read it', async () => {
    const contact = await create('contacts', { first_name: 'Edith' })
    await create('notes', { body: 'Secret', ...linked(contact) })
    await create('tasks', { title: 'Call', ...linked(contact) })
    const data = async (search: string, key?: string) =>
      types((await timeline(contact.id, search, key)).body.data)
    assert.deepEqual(await data('?types=task,note,note'), ['task', 'note'])
    assert.deepEqual(await data('?types=change'), ['change'])
    const { key } = await createKey(on.db, on.api.organizationId, { scopes: ['contacts:read', 'tasks:read'] })
    assert.deepEqual(await data('', key), ['task', 'change'])
    for (const [type, scope] of [
      ['note', 'notes:read'],
      ['run', 'workflows:read'],
      ['delivery', 'webhooks:read'],
    ]) {
      const { status, body } = await timeline(contact.id, `?types=task,${type}`, key)
      assert.deepEqual([status, body.error.type], [403, 'insufficient_scope'], type)
      assert.match(JSON.stringify(body.error), new RegExp(scope!))
    }
    const { key: without } = await createKey(on.db, on.api.organizationId, { scopes: ['tasks:read'] })
    assert.equal((await timeline(contact.id, '?types=task', without)).status, 403)
    const wrong = await timeline(contact.id, '?types=notes&offset=3')
    assert.equal(wrong.status, 422)
    assert.match(JSON.stringify(wrong.body.detail), /types.*note.*offset/)
    const elsewhere = await createKey(on.db, await createOrganization(on.db))
    for (const unknown of [await timeline(contact.id, '', elsewhere.key), await timeline(randomUUID())])
      assert.deepEqual([unknown.status, unknown.body.error.type], [404, 'not_found'])
  })

  it('includes those of a merged duplicate, and ends with the record', async () => {
    const [contact, twin] = [
      await create('contacts', { first_name: 'A' }),
      await create('contacts', { first_name: 'B' }),
    ]
    const note = await create('notes', { body: 'Of the twin', ...linked(twin) })
    const merged = await on.api.request('POST', `/v1/objects/contacts/${contact.id}/merge`, {
      body: { from: twin.id },
    })
    assert.equal(merged.status, 200)
    const { body } = await timeline(contact.id)
    assert.ok(body.data.some((entry: Entry) => entry.data.id === note.id))
    assert.ok(body.data.some((entry: Entry) => entry.data.record_id === twin.id))
    assert.equal((await timeline(twin.id)).body.error.merged_into, contact.id)
    await on.api.request('DELETE', `/v1/objects/notes/${note.id}`)
    assert.ok(!(await timeline(contact.id)).body.data.some((entry: Entry) => entry.data.id === note.id))
    await on.api.request('DELETE', `/v1/objects/contacts/${contact.id}`)
    assert.equal((await timeline(contact.id)).status, 404)
  })

  it('is in the export of a contact, with its files, for keys that may read all of it', async () => {
    const contact = await create('contacts', { first_name: 'Grace', email: 'grace@x.example' })
    await create('notes', { body: 'Wants a copy', ...linked(contact) })
    await on.api.request('POST', `/v1/objects/contacts/${contact.id}/files?name=id.txt`, {
      body: 'x',
      headers: { 'Content-Type': 'text/plain' },
    })
    const path = `/v1/objects/contacts/${contact.id}/export`
    const { status, body, headers } = await on.api.request('GET', path)
    assert.equal(status, 200, JSON.stringify(body))
    assert.match(headers.get('content-disposition')!, /contact-.*\.json/)
    assert.deepEqual(
      [body.object, body.contact.email, body.files[0].name, types(body.timeline)],
      ['contact_export', 'grace@x.example', 'id.txt', ['note', 'change']],
    )
    const { key } = await createKey(on.db, on.api.organizationId, { scopes: ['contacts:read'] })
    assert.equal((await on.api.request('GET', path, { key })).status, 403)
    const { key: elsewhere } = await createKey(on.db, await createOrganization(on.db))
    assert.equal((await on.api.request('GET', path, { key: elsewhere })).status, 404)
  })
})
