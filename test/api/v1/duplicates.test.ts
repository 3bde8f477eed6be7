import assert from 'node:assert/strict'
import { listDuplicates } from '../../../db/records/duplicates.ts'
import { testActor } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = any

describe('duplicates', () => {
  const on = withApi()
  const create = async (kind: string, body: object): Promise<Json> =>
    (await on.api.request('POST', `/v1/objects/${kind}`, { body })).body
  const list = async (kind: string, search = ''): Promise<Json> =>
    (await on.api.request('GET', `/v1/objects/${kind}/duplicates${search}`)).body

  it('are groups of records with an equal email, domain or name', async () => {
    const ada = await create('contacts', { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@x.example' })
    const same = await create('contacts', {
      first_name: 'ADA',
      last_name: 'lovelace',
      email: 'ADA@x.example',
    })
    await create('contacts', { first_name: 'Byron', last_name: 'Lovelace', email: 'byron@x.example' })
    const gone = await create('contacts', { email: 'byron@x.example' })
    await on.api.request('DELETE', `/v1/objects/contacts/${gone.id}`)
    for (const name of ['Acme', 'ACME', 'Other']) await create('companies', { name, domain: 'acme.example' })
    const shown = ({ data }: Json) =>
      data.map(({ by, value, count, records }: Json) => [by, value, count, records.length])
    const byEmail = await list('contacts')
    assert.deepEqual(shown(byEmail), [['email', 'ada@x.example', 2, 2]])
    assert.deepEqual(
      byEmail.data[0].records.map(({ id }: Json) => id),
      [ada.id, same.id],
    )
    assert.deepEqual(shown(await list('contacts', '?by=name')), [['name', 'lovelace, ada', 2, 2]])
    assert.deepEqual(shown(await list('companies')), [['domain', 'acme.example', 3, 3]])
    assert.deepEqual(shown(await list('companies', '?by=name')), [['name', 'acme', 2, 2]])
    assert.equal((await on.api.request('GET', '/v1/objects/contacts/duplicates?by=job_title')).status, 422)
  })

  it('come page by page, each once, however few records a page compares', async () => {
    for (let n = 0; n < 5; n++)
      for (let m = 0; m <= n % 3; m++) await create('contacts', { email: `p${n}@page.example` })
    const found: string[] = []
    for (let cursor = ''; ; ) {
      const page = await list('contacts', `?limit=1${cursor}`)
      found.push(...page.data.map(({ value }: Json) => value))
      if (!page.has_more) break
      cursor = `&cursor=${page.next_cursor}`
    }
    assert.deepEqual(found, ['ada@x.example', 'p1@page.example', 'p2@page.example', 'p4@page.example'])
    for (const compared of [1, 2, 3, 4, 100]) {
      const some: string[] = []
      let cursor: string | undefined
      for (let pages = 0; pages < 30; pages++) {
        const page = await on.db.tenant(on.api.organizationId, testActor, (tx) =>
          listDuplicates(tx, 'contacts', 'email', { limit: 2, cursor }, compared),
        )
        some.push(...page.data.map(({ value }) => value))
        if (!page.has_more) break
        cursor = page.next_cursor ?? undefined
      }
      // A page that compares fewer records than a group has cannot find it.
      if (compared > 3) assert.deepEqual(some, found, String(compared))
      assert.equal(new Set(some).size, some.length, String(compared))
    }
  })
})
