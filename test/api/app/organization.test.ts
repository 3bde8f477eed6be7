import assert from 'node:assert/strict'
import { signIn } from '../../support/session.ts'
import { withApp } from '../../support/with-api.ts'

describe('the organization', () => {
  const suite = withApp()

  it('shows the defaults of unset settings', async () => {
    const { status, body } = await suite.app('GET', '/organization')
    assert.equal(status, 200)
    const { currency, timezone, log_retention_days, run_retention_days, strict_custom_fields } = body
    assert.deepEqual(
      { currency, timezone, log_retention_days, run_retention_days, strict_custom_fields },
      {
        currency: 'USD',
        timezone: 'UTC',
        log_retention_days: 30,
        run_retention_days: 90,
        strict_custom_fields: false,
      },
    )
  })

  it('sets the currency of amounts without one', async () => {
    const { status, body } = await suite.app('PATCH', '/organization', { currency: 'eur' })
    assert.deepEqual([status, body.currency, body.timezone], [200, 'EUR', 'UTC'])
    const deal = await suite.api.request('POST', '/v1/objects/deals', { body: { name: 'Big', amount: 5 } })
    assert.equal(deal.body.currency, 'EUR')
  })

  it('refuses custom fields without a definition in strict mode', async () => {
    const create = () =>
      suite.api.request('POST', '/v1/objects/contacts', {
        body: { email: 'ada@example.com', custom_fields: { colour: 'red' } },
      })
    assert.equal((await create()).status, 201)
    assert.equal((await suite.app('PATCH', '/organization', { strict_custom_fields: true })).status, 200)
    const refused = await create()
    assert.deepEqual([refused.status, refused.body.detail[0].loc], [422, ['body', 'custom_fields', 'colour']])
  })

  it('reports all issues, and only admins can update it', async () => {
    const wrong = await suite.app('PATCH', '/organization', {
      currency: 'XXZ',
      timezone: 'Mars',
      log_retention_days: 0,
      run_retention_days: 4_000,
    })
    assert.equal(wrong.status, 422)
    assert.deepEqual(
      wrong.body.detail.map(({ loc }: { loc: string[] }) => loc[1]),
      ['currency', 'timezone', 'log_retention_days', 'run_retention_days'],
    )
    const member = await signIn(suite.db, suite.api, 'member')
    assert.equal((await member('GET', '/organization')).status, 200)
    assert.equal((await member('PATCH', '/organization', { name: 'Mine' })).status, 403)
  })

  it('changes only the given members of env, and removes one with null', async () => {
    const patch = (env: unknown) => suite.app('PATCH', '/organization', { env })
    assert.deepEqual((await suite.app('GET', '/organization')).body.env, {})
    await patch({ base_url: 'https://x.test', vat: 0.081, test: true })
    const { body } = await patch({ vat: null, base_url: 'https://y.test' })
    assert.deepEqual(body.env, { base_url: 'https://y.test', test: true })
    assert.deepEqual((await suite.app('PATCH', '/organization', { name: 'Mine' })).body.env, body.env)
    await Promise.all([1, 2, 3, 4].map((i) => patch({ [`at_once_${i}`]: i })))
    assert.equal(Object.keys((await suite.app('GET', '/organization')).body.env).length, 6)
  })

  it('refuses members of env that no placeholder could read, and too many', async () => {
    const names = ['', 'a-b', '1a', 'x'.repeat(65)]
    const env = {
      ...Object.fromEntries(names.map((name) => [name, 'x'])),
      list: [1],
      long: 'x'.repeat(4_097),
    }
    const { status, body } = await suite.app('PATCH', '/organization', { env })
    assert.equal(status, 422)
    assert.deepEqual(
      body.detail.map(({ loc }: { loc: string[] }) => loc.slice(1).join('.')).sort(),
      [...names, 'list', 'long'].map((name) => `env.${name}`).sort(),
    )
    const many = Object.fromEntries([...Array(101).keys()].map((i) => [`s${i}`, i]))
    const refused = await suite.app('PATCH', '/organization', { env: many })
    assert.deepEqual([refused.status, refused.body.error.param], [409, 'env'])
    const large = Object.fromEntries([...Array(10).keys()].map((i) => [`s${i}`, 'x'.repeat(4_000)]))
    assert.equal((await suite.app('PATCH', '/organization', { env: large })).status, 409)
  })
})
