import assert from 'node:assert/strict'
import { withApi } from '../../support/with-api.ts'

describe('the body of an activity', () => {
  const on = withApi()
  const send = (method: string, path: string, body?: object) =>
    on.api.request(method, `/v1/objects/activities${path}`, body && { body })
  const email = (body: string) => ({ type: 'email', subject: 'Offer', direction: 'inbound', body })
  /** A text of so many characters, of two bytes where it can, with a last word of its own. */
  const text = (length: number, last: string) =>
    `${'ü'.repeat(9)} `.repeat(length / 10).slice(0, -last.length) + last

  it('is that of an email, of up to 100,000 characters, and is found by its last word', async () => {
    const body = text(100_000, 'zuletzt')
    assert.equal(body.length, 100_000)
    const made = await send('POST', '', email(body))
    assert.equal(made.status, 201, JSON.stringify(made.body).slice(0, 500))
    const { id } = made.body
    assert.equal((await send('GET', `/${id}`)).body.body, body)
    const found = await send('GET', '?q=zuletzt&fields=subject')
    assert.deepEqual(found.body.data, [{ object: 'activity', id, subject: 'Offer' }])
    const changed = await send('PATCH', `/${id}`, { body: text(100_000, 'danach') })
    assert.deepEqual([changed.status, changed.body.version], [200, 2])
    assert.equal((await send('GET', '?q=zuletzt')).body.data.length, 0)
    assert.equal((await send('GET', '?q=danach')).body.data.length, 1)
    const { data } = (await send('GET', `/${id}/history?field=body`)).body
    assert.equal(data[0].changes.body.from, body)
    assert.equal((await send('POST', `/${id}/revert`, { version: 1 })).body.body, body)
  })

  it('is refused beyond that, with the field and the limit', async () => {
    const { status, body } = await send('POST', '', email(text(100_010, 'end')))
    assert.deepEqual([status, body.detail[0].loc], [422, ['body', 'body']])
    assert.match(body.error.message, /100000 characters/)
  })

  it('is found with the largest custom fields beside it', async () => {
    const custom_fields = Object.fromEntries(
      Array.from({ length: 6 }, (_, n) => [`part${n}`, text(10_000, `ende${n}`)]),
    )
    const made = await send('POST', '', { ...email(text(100_000, 'body')), custom_fields })
    assert.equal(made.status, 422, 'two bytes each are too many')
    const ascii = Object.fromEntries(
      Object.entries(custom_fields).map(([name, value]) => [name, value.replaceAll('ü', 'u')]),
    )
    const { status, body } = await send('POST', '', { ...email(text(100_000, 'body')), custom_fields: ascii })
    assert.equal(status, 201, JSON.stringify(body).slice(0, 500))
    const found = await send('GET', '?q=ende5&fields=id')
    assert.deepEqual(
      found.body.data.map(({ id }: { id: string }) => id),
      [body.id],
    )
  })
})
