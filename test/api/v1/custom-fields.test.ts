import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Issue } from '../../../db/model/errors.ts'
import { CUSTOM_FIELD_TYPES } from '../../../db/model/records/custom-fields/types.ts'
import type { Answer } from '../../support/answer.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

describe('/v1/custom-fields', () => {
  const suite = withApi()
  beforeEach(async () => {
    const { data } = (await suite.api.request('GET', '/v1/custom-fields/contacts')).body
    for (const { name } of data) await suite.api.request('DELETE', `/v1/custom-fields/contacts/${name}`)
  })

  const define = (body: object, entity = 'contacts') =>
    suite.api.request('POST', `/v1/custom-fields/${entity}`, { body })
  const tier = { name: 'tier', type: 'select', options: ['gold', 'silver'] }

  it('creates, reads, lists, updates and deletes', async () => {
    const created = await define({ ...tier, label: 'Tier', default: 'GOLD' })
    assert.equal(created.status, 201)
    assert.equal(created.headers.get('etag'), '"1"')
    const { created_at, updated_at, ...shown } = created.body
    assert.deepEqual(shown, {
      object: 'custom_field',
      entity: 'contacts',
      name: 'tier',
      type: 'select',
      label: 'Tier',
      description: null,
      required: false,
      unique: false,
      options: ['gold', 'silver'],
      default: 'gold',
      sensitive: false,
      version: 1,
    })
    assert.ok(Date.parse(created_at) && Date.parse(updated_at))
    const path = '/v1/custom-fields/contacts/tier'
    assert.deepEqual((await suite.api.request('GET', path)).body, created.body)
    await define({ name: 'score', type: 'number' })
    const list = (await suite.api.request('GET', '/v1/custom-fields/contacts')).body
    assert.deepEqual(
      [list.object, list.total, list.data.map(({ name }: { name: string }) => name)],
      ['list', 2, ['score', 'tier']],
    )
    const changed = await suite.api.request('PATCH', path, {
      body: { options: ['gold', 'silver', 'tin'] },
      headers: { 'If-Match': '"1"' },
    })
    assert.deepEqual(
      [changed.status, changed.headers.get('etag'), changed.body.default],
      [200, '"2"', 'gold'],
    )
    const stale = { body: { label: 'x' }, headers: { 'If-Match': '"1"' } }
    assert.equal((await suite.api.request('PATCH', path, stale)).status, 412)
    assert.equal((await suite.api.request('DELETE', path, { headers: { 'If-Match': '"1"' } })).status, 412)
    const same = await suite.api.request('PATCH', path, { body: { label: 'Tier' } })
    assert.equal(same.body.version, 2)
    const deleted = (await suite.api.request('DELETE', path)).body
    assert.deepEqual(
      [deleted.object, deleted.name, deleted.deleted, deleted.values_deleted],
      ['custom_field', 'tier', true, 0],
    )
    for (const method of ['GET', 'PATCH', 'DELETE'])
      assert.equal(
        (await suite.api.request(method, path, method === 'PATCH' ? { body: {} } : {})).status,
        404,
      )
  })

  it('pages the list', async () => {
    for (const name of ['c', 'a', 'b']) await define({ name, type: 'text' })
    const first = (await suite.api.request('GET', '/v1/custom-fields/contacts?limit=2')).body
    assert.deepEqual([first.has_more, first.data.length, first.total], [true, 2, 3])
    const next = await suite.api.request(
      'GET',
      `/v1/custom-fields/contacts?limit=2&cursor=${first.next_cursor}`,
    )
    assert.deepEqual(
      next.body.data.map(({ name }: { name: string }) => name),
      ['c'],
    )
    assert.equal(next.body.next_cursor, null)
    assert.equal((await suite.api.request('GET', '/v1/custom-fields/companies?cursor=x')).status, 400)
  })

  it('reports all issues of a definition', async () => {
    const wrong: [body: object, ...fields: string[]][] = [
      [{}, 'name', 'type'],
      [{ name: 'Tier', type: 'enum' }, 'name', 'type'],
      [{ name: 'sort', type: 'text' }, 'name'],
      [{ name: 'a'.repeat(64), type: 'text', color: 'red' }, 'name', 'color'],
      [{ name: 'a', type: 'select' }, 'options'],
      [{ name: 'a', type: 'select', options: [] }, 'options'],
      [{ name: 'a', type: 'select', options: ['x', 'X'] }, 'options'],
      [{ name: 'a', type: 'multi_select', options: ['x;y'] }, 'options'],
      [{ name: 'a', type: 'text', options: ['x'] }, 'options'],
      [{ name: 'a', type: 'number', default: 'x' }, 'default'],
      [{ name: 'a', type: 'select', options: ['x'], default: 'y' }, 'default'],
      [{ name: 'a', type: 'json', unique: true, options: ['x'] }, 'options', 'unique'],
      [{ name: 'a', type: 'text', unique: true, default: 'x' }, 'default'],
      [{ name: 'a', type: 'text', label: '', required: 'yes' }, 'label', 'required'],
      [{ name: 'a', type: 'json', default: JSON.parse('['.repeat(20) + ']'.repeat(20)) }, 'default'],
      [{ name: 'a', type: 'json', default: 'x'.repeat(10_001) }, 'default'],
      [
        { name: 'limit', type: 'boolean', unique: true, options: ['a'], default: 'maybe', foo: 1 },
        'name',
        'unique',
        'options',
        'default',
        'foo',
      ],
      [{ name: 'A', type: 'number', options: ['x', 'X'], default: 'y' }, 'name', 'options', 'default'],
    ]
    for (const [body, ...fields] of wrong) {
      const { status, body: answer } = await define(body)
      assert.equal(status, 422, JSON.stringify(body))
      const named = answer.detail.map(({ loc }: { loc: string[] }) => loc[1])
      assert.deepEqual(new Set(named), new Set(fields), JSON.stringify(body))
    }
    await define(tier)
    const again = await define(tier)
    assert.deepEqual([again.status, again.body.error.param], [409, 'name'])
    const renamed = await suite.api.request('PATCH', '/v1/custom-fields/contacts/tier', {
      body: { name: 'x' },
    })
    assert.equal(renamed.status, 422)
    assert.equal((await define(tier, 'persons')).status, 404)
  })

  it('is part of the schema of the kind', async () => {
    await define({ ...tier, required: true, default: 'gold' })
    const { body } = await suite.api.request('GET', '/v1/objects/contacts/schema')
    assert.deepEqual(body.custom_fields, [
      {
        name: 'tier',
        type: 'select',
        label: 'tier',
        description: null,
        required: true,
        unique: false,
        options: ['gold', 'silver'],
        default: 'gold',
        searchable: true,
        sortable: true,
        operators: ['eq', 'ne', 'in', 'nin', 'is_null'],
      },
    ])
    assert.deepEqual((await suite.api.request('GET', '/v1/objects/companies/schema')).body.custom_fields, [])
    await define({ name: 'code', type: 'text', unique: true })
    const keys = (await suite.api.request('GET', '/v1/objects/contacts/schema')).body.upsert_keys
    assert.deepEqual(keys, ['email', 'external_id', 'custom_fields.code'])
  })

  it('makes lists compare by type, and lists the operators of a type', async () => {
    await define({ name: 'score', type: 'number' })
    for (const score of [9, 10, 100]) {
      const body = { first_name: 'Ada', tags: ['scored'], custom_fields: { score } }
      await suite.api.request('POST', '/v1/objects/contacts', { body })
    }
    const list = async (query: string) =>
      suite.api.request('GET', `/v1/objects/contacts?tags[has]=scored&${query}`)
    const scores = (
      await list('custom_fields.score[gte]=10&sort=custom_fields.score&order=asc')
    ).body.data.map((contact: { custom_fields: { score: number } }) => contact.custom_fields.score)
    assert.deepEqual(scores, [10, 100])
    const { status, body } = await list('custom_fields.score[contains]=1&custom_fields.score[lt]=many')
    assert.equal(status, 422)
    assert.match(body.error.hint, /type number and supports the operators eq, ne, in, nin, is_null, gt/)
    assert.equal(body.detail.length, 2)
    const { next_cursor } = (await list('sort=custom_fields.score&limit=1')).body
    await suite.api.request('PATCH', '/v1/custom-fields/contacts/score', { body: { type: 'text' } })
    const after = await list(`sort=custom_fields.score&limit=1&cursor=${next_cursor}`)
    assert.deepEqual([after.status, after.body.error.param], [400, 'cursor'])
  })

  it('compares a field without a definition as a number in the order of numbers', async () => {
    for (const arr of [20_000, 5_000, '9000', 100_000, 'many', null])
      await suite.api.request('POST', '/v1/objects/companies', {
        body: { name: `arr ${arr}`, custom_fields: { arr } },
      })
    const found = async (query: string) => {
      const { body } = await suite.api.request(
        'GET',
        `/v1/objects/companies?${query}&sort=created_at&order=asc`,
      )
      return body.data.map(({ custom_fields }: { custom_fields: { arr: unknown } }) => custom_fields.arr)
    }
    assert.deepEqual(await found('custom_fields.arr[gte]=10000'), [20_000, 100_000])
    assert.deepEqual(await found('custom_fields.arr[between]=5000,20000'), [20_000, 5_000, '9000'])
    assert.deepEqual(await found('custom_fields.arr[lt]=9000.5'), [5_000, '9000'])
    assert.deepEqual(await found('custom_fields.arr[gte]=m'), ['many'])
    assert.deepEqual(await found('custom_fields.arr=9000'), ['9000'])
  })

  it('sorts by a field without a definition: numbers by value, then texts, page by page', async () => {
    for (const mrr of [20_000, 5_000, '9000', 'many', 100_000, 'A few', null, 5_000.5, -1])
      await suite.api.request('POST', '/v1/objects/companies', {
        body: { name: `mrr ${mrr}`, custom_fields: { mrr } },
      })
    const sorted = async (sort: string) => {
      const values: unknown[] = []
      let cursor: string | null = null
      do {
        const { body } = await suite.api.request(
          'GET',
          `/v1/objects/companies?name[starts_with]=mrr&sort=${sort}&limit=2${cursor ? `&cursor=${cursor}` : ''}`,
        )
        values.push(...body.data.map((one: { custom_fields: { mrr?: unknown } }) => one.custom_fields.mrr))
        cursor = body.next_cursor
      } while (cursor)
      return values
    }
    const numbers = [-1, 5_000, 5_000.5, '9000', 20_000, 100_000]
    assert.deepEqual(await sorted('custom_fields.mrr&order=asc'), [...numbers, 'A few', 'many', undefined])
    assert.deepEqual(await sorted('-custom_fields.mrr'), [
      ...numbers.toReversed(),
      'many',
      'A few',
      undefined,
    ])
    assert.deepEqual(await sorted('custom_fields.mrr,-created_at'), [...numbers, 'A few', 'many', undefined])
  })

  it('requires the scope of the kind', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['contacts:read'] })
    assert.equal((await suite.api.request('GET', '/v1/custom-fields/contacts', { key })).status, 200)
    assert.equal((await suite.api.request('GET', '/v1/custom-fields/companies', { key })).status, 403)
    assert.equal(
      (await suite.api.request('POST', '/v1/custom-fields/contacts', { key, body: tier })).status,
      403,
    )
    const other = await createKey(suite.db, await createOrganization(suite.db))
    await define(tier)
    const path = '/v1/custom-fields/contacts/tier'
    for (const method of ['GET', 'DELETE'])
      assert.equal((await suite.api.request(method, path, { key: other.key })).status, 404)
  })

  it('creates a name once for concurrent requests', async () => {
    const asked = Array.from({ length: 8 }, (_, i) => define({ name: `n${i % 2}`, type: 'number' }))
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [201, 201, 409, 409, 409, 409, 409, 409])
  })

  it('validates the records of the kind, and reports the position of each issue', async () => {
    await define({ name: 'score', type: 'number', unique: true })
    await define({ name: 'since', type: 'date', required: true })
    const contact = (custom_fields: object) =>
      suite.api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada', custom_fields } })
    const { status, body } = await contact({ score: 'x', deep: { a: 1 } })
    assert.equal(status, 422)
    assert.deepEqual(
      body.detail.map(({ loc, type }: { loc: string[]; type: string }) => [loc, type]),
      [
        [['body', 'custom_fields', 'score'], 'invalid_number'],
        [['body', 'custom_fields', 'deep'], 'invalid_value'],
        [['body', 'custom_fields', 'since'], 'missing'],
      ],
    )
    const first = await contact({ score: '5.0', since: '2026-01-31' })
    assert.deepEqual([first.status, first.body.custom_fields], [201, { score: 5, since: '2026-01-31' }])
    const second = await contact({ score: 5, since: '2026-01-31' })
    assert.deepEqual([second.status, second.body.error.param], [409, 'custom_fields.score'])
    const nested = `{"first_name":"A","custom_fields":{"x":${'['.repeat(40)}${']'.repeat(40)}}}`
    const deep = await suite.api.request('POST', '/v1/objects/contacts', { body: nested })
    assert.equal(deep.status, 422)
    const huge = await suite.api.request('POST', '/v1/objects/contacts', {
      body: '{"first_name":"A","custom_fields":{"x":1e999}}',
    })
    assert.equal(huge.status, 422)
    await suite.api.request('DELETE', `/v1/objects/contacts/${first.body.id}`)
  })

  it('reports issues of custom fields, native fields and references together', async () => {
    await define({ name: 'score', type: 'number' })
    await define({ name: 'since', type: 'date', required: true })
    const at = ({ body }: Answer) =>
      body.detail.map(({ loc }: { loc: string[] }) => loc.slice(1).join('.')).sort()
    const nobody = '01900000-0000-7000-8000-000000000000'
    const wrong = { email: 'x', company_id: nobody, custom_fields: { score: 'x', 'a b': 1, deep: { a: 1 } } }
    const fields = ['company_id', 'custom_fields.a b', 'custom_fields.deep', 'custom_fields.score', 'email']
    const path = '/v1/objects/contacts'
    const headers = { 'Idempotency-Key': 'all-at-once' }
    for (const options of [{ body: wrong }, { body: wrong, headers }]) {
      const refused = await suite.api.request('POST', path, options)
      assert.deepEqual([refused.status, at(refused)], [422, [...fields, 'custom_fields.since'].sort()])
    }
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['contacts:write'] })
    assert.ok(!at(await suite.api.request('POST', path, { body: wrong, key })).includes('company_id'))
    const made = await suite.api.request('POST', path, {
      body: { first_name: 'Ada', custom_fields: { since: '2026-01-31' } },
    })
    const one = `${path}/${made.body.id}`
    assert.deepEqual(at(await suite.api.request('PATCH', one, { body: wrong })), fields.sort())
    const references = { owner_id: nobody, company_id: nobody, custom_fields: { score: 'x' } }
    const twice = await suite.api.request('PATCH', one, { body: references })
    assert.deepEqual(at(twice), ['company_id', 'custom_fields.score', 'owner_id'])
    const query = 'limit=0&custom_fields.score[gt]=x&custom_fields.since=x&custom_fields.other=x&version=x'
    for (const list of [path, `${one}/contacts`])
      assert.deepEqual(at(await suite.api.request('GET', `${list}?${query}`)), [
        'custom_fields.score[gt]',
        'custom_fields.since',
        'limit',
        'version',
      ])
    assert.deepEqual(at(await suite.api.request('GET', `${path}?sort=custom_fields.score&order=x`)), [
      'order',
    ])
    await suite.api.request('DELETE', one)
  })

  it('accepts the stored value of a removed option, and reports only other issues', async () => {
    await define(tier)
    const path = '/v1/objects/contacts'
    const made = await suite.api.request('POST', path, {
      body: { first_name: 'Ada', custom_fields: { tier: 'gold' } },
    })
    const one = `${path}/${made.body.id}`
    await suite.api.request('DELETE', one)
    const changed = await suite.api.request('PATCH', '/v1/custom-fields/contacts/tier', {
      body: { options: ['silver'] },
    })
    assert.equal(changed.status, 200)
    const { custom_fields } = (await suite.api.request('POST', `${one}/restore`)).body
    assert.deepEqual(custom_fields, { tier: 'gold' })
    const refused = await suite.api.request('PATCH', one, { body: { email: 'x', custom_fields } })
    assert.deepEqual(
      refused.body.detail.map(({ loc }: { loc: string[] }) => loc),
      [['body', 'email']],
    )
    const edited = await suite.api.request('PATCH', one, { body: { email: 'ada@x.example', custom_fields } })
    assert.deepEqual([edited.status, edited.body.custom_fields], [200, { tier: 'gold' }])
    await suite.api.request('DELETE', one)
    await suite.api.request('DELETE', '/v1/custom-fields/contacts/tier')
  })

  it('distinguishes read-only members of a definition from unknown ones', async () => {
    const { body } = await define(tier)
    const { status, body: answer } = await suite.api.request('PATCH', '/v1/custom-fields/contacts/tier', {
      body: { ...body, color: 'red' },
    })
    const of = (type: string) =>
      answer.detail
        .filter((issue: Issue) => issue.type === type)
        .map(({ loc }: Issue) => loc[1])
        .sort()
    assert.equal(status, 422)
    assert.deepEqual(of('read_only'), ['created_at', 'entity', 'name', 'object', 'updated_at', 'version'])
    assert.deepEqual(of('unrecognized_key'), ['color'])
    assert.equal(answer.detail.length, 7)
  })

  it('never answers 500, for any body', async () => {
    const names = ['a', 'b', 'limit', 'A', '__proto__']
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom('5', 'x', '2026-01-31', 'true', ['x']),
    )
    const definition = fc.record(
      {
        name: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...names) }, value),
        type: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...CUSTOM_FIELD_TYPES) }, value),
        required: fc.oneof({ weight: 5, arbitrary: fc.boolean() }, value),
        unique: fc.oneof({ weight: 5, arbitrary: fc.boolean() }, value),
        options: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(['x', 'y'], null) }, value),
        default: value,
      },
      { requiredKeys: [] },
    )
    const fields = fc.dictionary(fc.constantFrom(...names), value)
    const parameter = fc.tuple(fc.constantFrom('eq', 'gt', 'in', 'between', 'has', 'contains'), fc.string())
    await fc.assert(
      fc.asyncProperty(
        definition,
        definition,
        fields,
        parameter,
        async (body, patch, given, [operator, text]) => {
          const answers = [
            await define(body),
            await suite.api.request('PATCH', '/v1/custom-fields/contacts/a', {
              body: { ...patch, name: undefined },
            }),
            await suite.api.request('POST', '/v1/objects/contacts', {
              body: { first_name: 'Ada', custom_fields: given },
            }),
            await suite.api.request(
              'GET',
              `/v1/objects/contacts?custom_fields.a[${operator}]=${encodeURIComponent(text)}&sort=custom_fields.b`,
            ),
          ]
          for (const { status, body } of answers) assert.ok(status < 500, JSON.stringify(body))
        },
      ),
      { numRuns: 60 },
    )
  })
})
