import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createOrganization } from '../../support/database.ts'
import { until } from '../../support/until.ts'
import { withApi } from '../../support/with-api.ts'

describe('consents', () => {
  const suite = withApi()
  const call = (method: string, path: string, body?: object) =>
    suite.api.request(method, `/v1${path}`, body ? { body } : {})
  const contact = async (values: object = { last_name: 'Lovelace' }): Promise<string> =>
    (await call('POST', '/objects/contacts', values)).body.id
  const give = (contact_id: string, values: object = {}) =>
    call('POST', '/objects/consents', {
      contact_id,
      purpose: 'newsletter',
      channel: 'email',
      state: 'granted',
      ...values,
    })
  const upsert = async (data: object) => {
    const operations = [{ op: 'upsert', by: 'contact_id', data }]
    const { body } = await call('POST', '/objects/consents/batch', { operations })
    return body.results[0]
  }
  const change = (id: string, body: object) => call('PATCH', `/objects/consents/${id}`, body)
  const list = async (query: string) => (await call('GET', `/objects/consents?${query}`)).body.data
  const eventsOf = async (id: string) =>
    (await suite.db.system('events').where({ subject_id: id }).orderBy('id').select('name')).map(
      ({ name }) => name,
    )

  it('hold what a contact said, when, where, to which text and on which basis', async () => {
    const ada = await contact()
    const text = 'I want the newsletter of Motors Ltd. I can withdraw this at any time.'
    const { status, body } = await give(ada, {
      purpose: 'Newsletter',
      stated_at: '2024-02-03T10:00:00Z',
      source: 'form',
      text,
    })
    equal(status, 201, JSON.stringify(body))
    deepEqual(
      [body.object, body.contact_id, body.purpose, body.channel, body.state, body.stated_at],
      ['consent', ada, 'newsletter', 'email', 'granted', '2024-02-03T10:00:00.000Z'],
    )
    deepEqual([body.source, body.text, body.legal_basis], ['form', text, 'consent'])
    const now = (await give(ada, { purpose: 'events' })).body
    ok(Math.abs(Date.parse(now.stated_at) - Date.now()) < 60_000)
    deepEqual(await eventsOf(body.id), ['consent.created', 'consent.granted'])
    const { data } = (await call('GET', `/objects/contacts/${ada}/timeline?types=consent`)).body
    equal(data.length, 2)
  })

  it('change with the next statement, and the history has each', async () => {
    const ada = await contact()
    const { id } = (await give(ada, { stated_at: '2024-01-01T00:00:00Z', source: 'form' })).body
    const withdrawn = (await change(id, { state: 'withdrawn' })).body
    equal(withdrawn.state, 'withdrawn')
    ok(withdrawn.stated_at > '2025')
    equal(withdrawn.source, null, 'the form was the source of the grant')
    const again = await change(id, { state: 'granted' })
    match(again.body.error.message, /stated_at: is required to grant what was withdrawn/)
    const renewed = await change(id, {
      state: 'granted',
      stated_at: new Date().toISOString(),
      source: 'phone call',
    })
    deepEqual([renewed.status, renewed.body.source], [200, 'phone call'])
    deepEqual(await eventsOf(id), [
      'consent.created',
      'consent.granted',
      'consent.updated',
      'consent.withdrawn',
      'consent.updated',
      'consent.granted',
    ])
    const { data } = (await call('GET', `/objects/consents/${id}/history?field=state`)).body
    deepEqual(
      data.map(({ changes }: { changes: { state: { to: string } } }) => changes.state.to),
      ['granted', 'withdrawn', 'granted'],
    )
  })

  it('are not changed by an older statement, nor by one of the future', async () => {
    const ada = await contact()
    const { id } = (await give(ada, { state: 'withdrawn', stated_at: '2024-05-01T00:00:00Z' })).body
    const old = await change(id, { state: 'granted', stated_at: '2023-01-01T00:00:00Z' })
    equal(old.status, 422)
    match(old.body.error.message, /is before 2024-05-01T00:00:00.000Z, when it was withdrawn/)
    const future = await give(ada, { channel: 'sms', stated_at: '2199-01-01T00:00:00Z' })
    match(future.body.error.message, /must not be in the future/)
    equal((await change(id, { source: 'letter' })).body.state, 'withdrawn')
  })

  it('of an old list stay withdrawn, whatever the order of its rows', async () => {
    const ada = await contact()
    const said = {
      stated_at: '2024-05-01T00:00:00.000Z',
      source: 'letter',
      text: null,
      legal_basis: 'contract',
    }
    const { id } = (await give(ada, { ...said, state: 'withdrawn' })).body
    const data = { contact_id: ada, purpose: 'newsletter', channel: 'email' }
    const old = {
      state: 'withdrawn',
      stated_at: '2019-01-01',
      source: 'list',
      text: 'old',
      legal_basis: 'other',
    }
    const again = await upsert({ ...data, ...old })
    equal(again.status, 200, JSON.stringify(again))
    const stored = async () => {
      const { state, stated_at, source, text, legal_basis } = (await call('GET', `/objects/consents/${id}`))
        .body
      return { state, stated_at, source, text, legal_basis }
    }
    deepEqual(await stored(), { state: 'withdrawn', ...said })
    const granted = await upsert({ ...data, state: 'granted', stated_at: '2021-01-01' })
    deepEqual([granted.status, granted.error.type], [422, 'validation_error'])
    equal((await change(id, { state: 'withdrawn', stated_at: '2018-01-01' })).body.stated_at, said.stated_at)
    equal((await change(id, { state: 'granted', stated_at: '2020-01-01' })).status, 422)
    deepEqual(await stored(), { state: 'withdrawn', ...said })
    // Without a state, a time is a correction.
    const corrected = await change(id, { stated_at: '2023-01-01T00:00:00.000Z' })
    equal(corrected.body.stated_at, '2023-01-01T00:00:00.000Z')
    equal(
      (await change(id, { state: 'withdrawn', stated_at: '2025-01-01' })).body.stated_at.slice(0, 4),
      '2025',
    )
  })

  it('of one time are withdrawn, whichever comes first', async () => {
    const [ada, bob] = [await contact(), await contact()]
    const day = { stated_at: '2024-05-01' }
    const first = (await give(ada, { ...day, state: 'withdrawn' })).body
    const refused = await change(first.id, { ...day, state: 'granted' })
    equal(refused.status, 422)
    match(refused.body.error.message, /is not after 2024-05-01T00:00:00.000Z, when it was withdrawn/)
    const other = (await give(bob, day)).body
    equal((await change(other.id, { ...day, state: 'withdrawn' })).body.state, 'withdrawn')
    equal((await change(other.id, { state: 'granted', stated_at: '2024-05-01T00:00:01Z' })).status, 200)
  })

  it('of a day without a time withdraw what was granted on that day', async () => {
    const { id } = (await give(await contact(), { stated_at: '2024-05-01T09:00:00Z', source: 'form' })).body
    const given = { state: 'withdrawn', source: 'list' }
    equal((await change(id, { ...given, stated_at: '2024-04-30' })).status, 422)
    const { body } = await change(id, { ...given, stated_at: '2024-05-01' })
    deepEqual([body.state, body.stated_at, body.source], ['withdrawn', '2024-05-01T09:00:00.000Z', 'list'])
    equal((await change(id, { state: 'granted', stated_at: '2024-05-01T09:00:00Z' })).status, 422)
  })

  it('granted again have the text and the legal basis of this statement only', async () => {
    const ada = await contact()
    const { id } = (
      await give(ada, { stated_at: '2024-01-01', text: 'The old text.', legal_basis: 'contract' })
    ).body
    const withdrawn = (await change(id, { state: 'withdrawn', stated_at: '2024-02-01' })).body
    deepEqual([withdrawn.text, withdrawn.legal_basis], ['The old text.', 'contract'])
    const granted = (await change(id, { state: 'granted', stated_at: '2024-03-01' })).body
    deepEqual([granted.text, granted.legal_basis], [null, 'consent'])
    await change(id, { state: 'withdrawn', stated_at: '2024-04-01' })
    const given = { text: 'The new text.', legal_basis: 'other' }
    const again = (await change(id, { state: 'granted', stated_at: '2024-05-01', ...given })).body
    deepEqual([again.text, again.legal_basis], [given.text, given.legal_basis])
  })

  it('are one for each contact, purpose and channel, also by upserts and of many at once', async () => {
    const ada = await contact()
    const first = (await give(ada)).body
    for (const other of [{}, { purpose: 'NEWSLETTER' }]) {
      const taken = await give(ada, other)
      deepEqual([taken.status, taken.body.error.param], [409, 'contact_id'])
      match(
        taken.body.error.message,
        /the contact has another consent with purpose newsletter, channel email/,
      )
    }
    equal((await give(ada, { channel: 'sms' })).status, 201)
    const moved = (await give(ada, { purpose: 'events' })).body
    equal((await change(moved.id, { purpose: 'newsletter' })).status, 409)

    const data = { contact_id: ada, purpose: 'Newsletter', channel: 'email', state: 'withdrawn' }
    const updated = await upsert(data)
    deepEqual([updated.status, updated.id], [200, first.id])
    const made = await upsert({ ...data, purpose: 'surveys' })
    equal(made.status, 201)
    // Without a channel it is `any`, as of a create.
    const any = await upsert({ contact_id: ada, purpose: 'calls', state: 'granted' })
    equal((await upsert({ contact_id: ada, purpose: 'calls', state: 'withdrawn' })).id, any.id)
    equal((await upsert({ purpose: 'calls', state: 'granted' })).status, 422)

    const bob = await contact()
    const all = await Promise.all(
      Array.from({ length: 8 }, () => upsert({ contact_id: bob, purpose: 'calls', state: 'granted' })),
    )
    equal(new Set(all.map(({ id }) => id)).size, 1)
    equal((await list(`contact_id=${bob}`)).length, 1)
    const operations = [1, 2].map(() => ({ op: 'create', data: { ...data, contact_id: bob } }))
    const { results } = (await call('POST', '/objects/consents/batch', { operations })).body
    deepEqual(results.map((one: { status: number }) => one.status).sort(), [201, 409])
  })

  it('are found with what prevails: do_not_contact of the contact', async () => {
    const willing = await contact({ last_name: 'Willing' })
    const not = await contact({ last_name: 'Not', do_not_contact: true })
    for (const id of [willing, not]) await give(id, { purpose: 'finding' })
    const granted = 'purpose=finding&channel=email&state=granted'
    equal((await list(granted)).length, 2)
    const [found, ...more] = await list(`${granted}&contact.do_not_contact=false&expand=contact`)
    deepEqual([found.contact_id, found.expanded.contact.last_name, more], [willing, 'Willing', []])
    const contacts = (await call('GET', '/objects/contacts?associations.consents.purpose=finding')).body.data
    equal(contacts.length, 2)
  })

  it('go with a deleted contact and come back with a restored one', async () => {
    const ada = await contact()
    const { id } = (await give(ada)).body
    await call('DELETE', `/objects/contacts/${ada}`)
    equal((await call('GET', `/objects/consents/${id}`)).body.contact_id, null)
    // Cut off, it is linked to a contact that has the same consent.
    const bob = await contact()
    await give(bob)
    equal((await call('POST', `/objects/contacts/${bob}/associations/consents/${id}`, {})).status, 409)
    equal((await call('POST', `/objects/contacts/${ada}/restore`)).status, 200)
    equal((await call('GET', `/objects/consents/${id}`)).body.contact_id, ada)
    await call('DELETE', `/objects/consents/${id}`)
    await give(ada)
    equal((await call('POST', `/objects/consents/${id}/restore`)).status, 409)
  })

  it('of a merged contact move to the winner; of two with one purpose, the newer stays', async () => {
    const [winner, loser] = [await contact(), await contact()]
    const older = (await give(winner, { stated_at: '2023-01-01T00:00:00Z' })).body.id
    const newer = (await give(loser, { state: 'withdrawn', stated_at: '2024-01-01T00:00:00Z' })).body.id
    const kept = (await give(winner, { purpose: 'b', stated_at: '2024-01-01T00:00:00Z' })).body.id
    const gone = (await give(loser, { purpose: 'b', stated_at: '2023-01-01T00:00:00Z' })).body.id
    const moved = (await give(loser, { purpose: 'c' })).body.id
    equal((await call('POST', `/objects/contacts/${winner}/merge`, { from: loser })).status, 200)
    const left = await list(`contact_id=${winner}`)
    deepEqual(left.map(({ id }: { id: string }) => id).sort(), [newer, kept, moved].sort())
    for (const id of [older, gone]) equal((await call('GET', `/objects/consents/${id}`)).status, 404)
  })

  it('of merged contacts with one time are withdrawn, on either side', async () => {
    const [winner, loser] = [await contact(), await contact()]
    const stated_at = '2024-01-01'
    const kept = [
      (await give(winner, { stated_at, state: 'withdrawn' })).body.id,
      (await give(loser, { purpose: 'b', stated_at, state: 'withdrawn' })).body.id,
    ]
    await give(loser, { stated_at })
    await give(winner, { purpose: 'b', stated_at })
    equal((await call('POST', `/objects/contacts/${winner}/merge`, { from: loser })).status, 200)
    const left = await list(`contact_id=${winner}`)
    deepEqual(left.map(({ id }: { id: string }) => id).sort(), kept.sort())
  })

  it('of merged contacts are compared as they are when they are locked', async () => {
    const [winner, loser] = [await contact(), await contact()]
    const { id } = (await give(winner, { stated_at: '2022-01-01' })).body
    await give(loser, { stated_at: '2023-01-01' })
    const writing = await suite.db.system.transaction()
    const changed = { state: 'withdrawn', stated_at: '2024-01-01' }
    equal(await writing('consents').where({ id }).update(changed), 1)
    const merged = call('POST', `/objects/contacts/${winner}/merge`, { from: loser })
    const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    try {
      await until(
        () => suite.db.asOwner(async (client) => (await client.query(waiting)).rowCount),
        'the merge waits',
        20,
      )
    } finally {
      await writing.commit()
    }
    equal((await merged).status, 200)
    const [left, ...more] = await list(`contact_id=${winner}`)
    deepEqual([left.id, left.state, more], [id, 'withdrawn', []])
  })

  it('have no merge, as each is the one of its contact, purpose and channel', async () => {
    const ada = await contact()
    const withdrawn = (await give(ada, { stated_at: '2024-01-01', state: 'withdrawn' })).body
    const { id } = (await give(ada, { channel: 'sms', text: 'Yes.' })).body
    const merged = await call('POST', `/objects/consents/${withdrawn.id}/merge`, { from: id })
    deepEqual([merged.status, merged.body.error.type], [404, 'not_found'])
    equal((await call('GET', `/objects/consents/${id}`)).status, 200)
    const { paths } = (await suite.api.request('GET', '/openapi.json')).body
    ok('/v1/objects/contacts/{entity_id}/merge' in paths)
    ok(!('/v1/objects/consents/{entity_id}/merge' in paths))
    const events = (await call('GET', '/events')).body.data.map(({ name }: { name: string }) => name)
    ok(!events.includes('consent.merged'))
  })

  it('belong to a contact, whatever the way in which they are made', async () => {
    const values = { purpose: 'newsletter', channel: 'email', state: 'granted' }
    const ada = await contact()
    const made = await call('POST', '/objects/consents', values)
    deepEqual([made.status, made.body.error.message], [422, 'contact_id: required'])
    const operations = [
      { op: 'create', data: values },
      { op: 'upsert', by: 'external_id', data: { ...values, external_id: 'C-1' } },
      { op: 'upsert', by: 'external_id', data: { ...values, external_id: 'C-1', contact_id: ada } },
      { op: 'upsert', by: 'external_id', data: { external_id: 'C-1', state: 'withdrawn' } },
    ]
    const { results } = (await call('POST', '/objects/consents/batch', { operations })).body
    deepEqual(
      results.map((one: { status: number }) => one.status),
      [422, 422, 201, 200],
      JSON.stringify(results),
    )
    const { schemas } = (await suite.api.request('GET', '/openapi.json')).body.components
    ok(schemas.ConsentCreate.required.includes('contact_id'))
  })

  it('keep their contact in a revert to the time when it was deleted', async () => {
    const ada = await contact()
    const { id } = (await give(ada)).body
    await call('DELETE', `/objects/contacts/${ada}`)
    const cut = (await call('GET', `/objects/consents/${id}`)).body
    equal(cut.contact_id, null)
    equal((await change(id, { source: 'letter' })).status, 200, 'other fields can still be changed')
    await call('POST', `/objects/contacts/${ada}/restore`)
    const { status, body } = await call('POST', `/objects/consents/${id}/revert`, { version: cut.version })
    deepEqual([status, body.contact_id, body.source], [200, ada, null])
  })

  it('take their files and the notes that are linked with them along with an erasure', async () => {
    const ada = await contact()
    const { id } = (await give(ada)).body
    const file = await suite.api.request('POST', `/v1/objects/consents/${id}/files?name=form.pdf`, {
      body: 'Ada Lovelace has signed.',
      headers: { 'Content-Type': 'application/pdf' },
    })
    equal(file.status, 201, JSON.stringify(file.body))
    const note = (
      await call('POST', '/objects/notes', { body: 'By letter', associations: [{ object: 'consent', id }] })
    ).body.id
    const { preview } = (await call('POST', `/objects/contacts/${ada}/erase`, {})).body
    deepEqual([preview.files, preview.linked], [1, 1])
    const { body } = await call('POST', `/objects/contacts/${ada}/erase`, { confirm: true })
    equal(body.erased.file, 1)
    deepEqual(body.to_review, [{ object: 'note', id: note, reason: 'linked' }])
    deepEqual(await suite.db.system('files').where({ id: file.body.id }), [])
  })

  it('are in the export of a person, and go with an erasure', async () => {
    const ada = await contact({ email: 'erase@example.com' })
    const one = (await give(ada, { source: 'a form' })).body.id
    const bob = await contact()
    const other = (await give(bob)).body.id
    const held = JSON.stringify((await call('GET', `/objects/contacts/${ada}/export`)).body)
    ok(held.includes(one) && held.includes('a form'))
    const { preview } = (await call('POST', `/objects/contacts/${ada}/erase`, {})).body
    deepEqual([preview.contacts, preview.consents], [1, 1])
    const { body } = await call('POST', `/objects/contacts/${ada}/erase`, { confirm: true })
    equal(body.erased.consent, 1)
    const { db } = suite
    deepEqual(await db.system('consents').where({ id: one }), [])
    deepEqual(await db.system('record_history').where({ record_id: one }), [])
    equal((await call('GET', `/objects/consents/${other}`)).status, 200)
  })

  it('of another organization are not seen by the key', async () => {
    const ada = await contact()
    const { id } = (await give(ada)).body
    const other = await createOrganization(suite.db)
    await suite.db.system('consents').where({ id }).update({ organization_id: other })
    // The same key in this organization is free.
    equal((await give(ada)).status, 201)
  })
})
