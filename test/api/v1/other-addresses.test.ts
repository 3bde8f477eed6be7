import assert from 'node:assert/strict'
import { withApi } from '../../support/with-api.ts'

describe('further addresses of contacts', () => {
  const on = withApi()
  const send = (method: string, path: string, body?: object) =>
    on.api.request(method, `/v1/objects/contacts${path}`, body && { body })
  const create = async (body: object) => {
    const answer = await send('POST', '', body)
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const ids = async (query: string) => {
    const { status, body } = await send('GET', `?${query}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body.data.map(({ id }: { id: string }) => id)
  }
  const upsert = async (email: string, fields: object = {}) => {
    const operations = [{ op: 'upsert', by: 'email', data: { email, ...fields } }]
    const { status, body } = await send('POST', '/batch', { operations })
    assert.equal(status, 200, JSON.stringify(body))
    return body.results[0]
  }

  it('are lists beside the own email and phone, without duplicates', async () => {
    const made = await create({
      email: 'ada@one.io',
      other_emails: ['Ada@Home.io', 'ada@home.io', 'ADA@one.io'],
      other_phones: '+49 30 901820; +41 44 668 18 00',
    })
    assert.equal(made.email, 'ada@one.io')
    assert.deepEqual(made.other_emails, ['Ada@Home.io'])
    assert.deepEqual(made.other_phones, ['+4930901820', '+41446681800'])
    const { body } = await send('PATCH', `/${made.id}`, { email: 'ada@home.io' })
    assert.deepEqual([body.email, body.other_emails], ['ada@home.io', []])
    const bad = await send('PATCH', `/${made.id}`, { other_emails: ['x', 'y@z.io', 'w'] })
    assert.deepEqual(
      bad.body.detail.map(({ loc }: { loc: unknown[] }) => loc.slice(1)),
      [
        ['other_emails', 0],
        ['other_emails', 2],
      ],
    )
    const many = Array.from({ length: 21 }, (_, n) => `${n}@many.io`)
    assert.equal((await send('PATCH', `/${made.id}`, { other_emails: many })).status, 422)
    const cleared = await send('PATCH', `/${made.id}`, { other_emails: null, other_phones: '' })
    assert.deepEqual([cleared.body.other_emails, cleared.body.other_phones], [[], []])
  })

  it('find the contact in upserts, searches, filters and warnings', async () => {
    const made = await create({
      email: 'bob@work.io',
      other_emails: ['Bob@home.io'],
      other_phones: ['+442071838750'],
    })
    const found = await upsert('bob@home.io', { job_title: 'Baker' })
    assert.deepEqual([found.status, found.record?.id ?? found.id], [200, made.id])
    const { body } = await send('GET', `/${made.id}`)
    assert.deepEqual(
      [body.email, body.other_emails, body.job_title],
      ['bob@work.io', ['Bob@home.io'], 'Baker'],
    )
    for (const query of [
      'q=bob@home',
      'q=020 7183 8750',
      'other_emails[has]=BOB@home.io',
      'other_phones[has]=%2B44 20 7183 8750',
    ])
      assert.deepEqual(await ids(query), [made.id], query)
    assert.ok(!(await ids('other_emails[has_not]=bob@home.io')).includes(made.id))
    assert.ok(!(await ids('other_emails[is_null]=true')).includes(made.id))
    const { warnings } = await create({ email: 'BOB@home.io', mobile_phone: '+442071838750' })
    assert.deepEqual(
      warnings.map(({ field, record_ids }: { field: string; record_ids: string[] }) => [field, record_ids]),
      [
        ['email', [made.id]],
        ['mobile_phone', [made.id]],
      ],
    )
    const duplicates = await send('GET', '/duplicates?by=phone')
    assert.deepEqual(
      duplicates.body.data.map(({ value, count }: { value: string; count: number }) => [value, count]),
      [['+442071838750', 2]],
    )
  })

  it('may be the own email of another contact, which is a duplicate then and is found before', async () => {
    const first = await create({ email: 'dee@work.io', other_emails: ['dee@home.io'] })
    const second = await create({ email: 'dee@other.io', first_name: 'Dee' })
    const { status, body } = await send('PATCH', `/${second.id}`, { email: 'Dee@home.io' })
    assert.deepEqual([status, body.email], [200, 'Dee@home.io'])
    const groups = (await send('GET', '/duplicates?by=email&limit=200')).body.data
    const group = groups.find(({ value }: { value: string }) => value === 'dee@home.io')
    assert.deepEqual(
      group?.records.map(({ id }: { id: string }) => id),
      [first.id, second.id],
    )
    assert.equal((await upsert('dee@home.io')).id, second.id)
    assert.equal((await upsert('dee@work.io')).id, first.id)
    const merged = await send('POST', `/${first.id}/merge`, { from: second.id })
    assert.deepEqual(
      [merged.body.email, merged.body.other_emails, merged.body.first_name],
      ['dee@work.io', ['dee@home.io'], 'Dee'],
    )
    assert.equal((await upsert('DEE@home.io')).id, first.id)
  })

  it('belong to one contact: a write of an email that another has is refused', async () => {
    const made = await create({ email: 'cy@own.io', other_emails: ['cy@other.io'] })
    for (const taken of ['CY@own.io', 'cy@OTHER.io']) {
      const { status, body } = await send('POST', '', { first_name: 'Copy', other_emails: [taken] })
      assert.deepEqual([status, body.error?.param], [409, 'other_emails'], taken)
      assert.match(body.error.hint, new RegExp(made.id))
    }
    const batch = await send('POST', '/batch', {
      operations: [
        { op: 'create', data: { first_name: 'One', other_emails: ['twice@x.io'] } },
        { op: 'create', data: { first_name: 'Two', other_emails: ['TWICE@x.io'] } },
      ],
    })
    assert.deepEqual(
      batch.body.results.map(({ status }: { status: number }) => status),
      [201, 409],
    )
    // Its own stay, and what it no longer has is free.
    assert.equal(
      (await send('PATCH', `/${made.id}`, { other_emails: ['cy@other.io', 'cy@new.io'] })).status,
      200,
    )
    assert.equal((await send('PATCH', `/${made.id}`, { other_emails: ['cy@new.io'] })).status, 200)
    await create({ first_name: 'Heir', other_emails: ['cy@other.io'] })
  })

  it('of two writes at once only one gets an email', async () => {
    const made = await Promise.all(
      ['A', 'B', 'C', 'D'].map((first_name) => send('POST', '', { first_name, other_emails: ['race@x.io'] })),
    )
    assert.deepEqual(made.map(({ status }) => status).sort(), [201, 409, 409, 409])
  })

  it('are united by a merge, and find the winner', async () => {
    const winner = await create({ email: 'w@merge.io', other_emails: ['w2@merge.io'] })
    const loser = await create({
      email: 'l@merge.io',
      phone: '+41446681801',
      other_emails: ['l2@merge.io'],
      other_phones: ['+41446681802'],
    })
    const { status, body } = await send('POST', `/${winner.id}/merge`, { from: loser.id })
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.email, body.phone], ['w@merge.io', '+41446681801'])
    assert.deepEqual(body.other_emails, ['w2@merge.io', 'l@merge.io', 'l2@merge.io'])
    assert.deepEqual(body.other_phones, ['+41446681802'])
    for (const email of ['l@merge.io', 'L2@merge.io', 'w2@merge.io']) {
      const found = await upsert(email)
      assert.equal(found.record?.id ?? found.id, winner.id, email)
    }
    assert.equal((await send('GET', `/${winner.id}`)).body.email, 'w@merge.io')
    const history = await send('GET', `/${winner.id}/history?field=other_emails`)
    // Also that of the loser.
    assert.equal(history.body.data.length, 3)
  })
})
