import assert from 'node:assert/strict'
import { z } from 'zod'
import { appRoutes } from '../../../api/settings/route-table.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { describeKind } from '../../../db/records/model/describe.ts'
import { entities, entityNames } from '../../../db/records/model/kinds/index.ts'
import { createSchema, recordSchema } from '../../../db/records/model/schemas.ts'
import { withApi } from '../../support/with-api.ts'

describe('/openapi.json and /docs', () => {
  const suite = withApi()

  it('describes every operation, each under a name of its own', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    assert.equal(body.openapi, '3.1.0')
    const ids = Object.values(body.paths).flatMap((methods) =>
      Object.values(methods as Record<string, { operationId: string }>).map(({ operationId }) => operationId),
    )
    assert.equal(ids.length, routes.length + appRoutes.length + 1, 'and the receiver of webhooks')
    assert.equal(new Set(ids).size, ids.length)
  })

  it('refers only to what is there', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref!)
    for (const $ref of new Set(references)) assert.ok(resolve(body, { $ref }), $ref)
  })

  it('is sound: every tag, path parameter, header and example is declared, and fits', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const tags = new Map(body.tags.map((tag: { name: string }) => [tag.name, tag]))
    for (const tag of body.tags) assert.ok(tag.description, tag.name)
    for (const [path, methods] of Object.entries<Record<string, Json>>(body.paths))
      for (const operation of Object.values(methods)) {
        const what = `${operation.operationId}`
        assert.match(what, /^[a-z][A-Za-z]+$/)
        assert.ok(operation.summary, what)
        for (const tag of operation.tags) assert.ok(tags.has(tag), what)
        const parameters = operation.parameters.map((one: object) => resolve(body, one))
        const places = parameters.map((one: Json) => `${one.in} ${one.name}`)
        assert.equal(new Set(places).size, places.length, what)
        const inPath = parameters.filter((one: Json) => one.in === 'path' && one.required)
        assert.deepEqual(
          inPath.map((one: Json) => one.name),
          [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
          what,
        )
        for (const parameter of parameters) assert.ok(parameter.schema, what)
        for (const [status, response] of Object.entries<object>(operation.responses)) {
          const { description, headers, content } = resolve(body, response)
          assert.ok(description, what)
          if (!path.startsWith('/webhooks')) assert.ok('X-Request-Id' in headers, `${what} ${status}`)
          for (const [type, media] of Object.entries<Json>(content))
            assert.ok(type === 'text/csv' || hasExample(body, media), `${what} ${status}`)
        }
      }
  })

  it('gives an example of every body, which the operation takes', async () => {
    for (const { id, body, example } of [...routes, ...appRoutes]) {
      if (!body) continue
      assert.ok(example, id)
      const parsed = body.safeParse(example)
      assert.deepEqual(parsed.error?.issues ?? [], [], id)
    }
  })

  it('shows of every shape an example that fits it', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const shapes = Object.entries<Json>(body.components.schemas).filter(([, { examples }]) => examples)
    assert.ok(shapes.length > 30)
    const all = JSON.parse(
      JSON.stringify(body.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
    )
    for (const [name, { examples }] of shapes) {
      const parsed = z.fromJSONSchema({ $ref: `#/$defs/${name}`, $defs: all }).safeParse(examples[0])
      assert.deepEqual(parsed.error?.issues ?? [], [], name)
    }
  })

  it('declares the statuses of the contract for every operation of /v1', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    for (const [path, methods] of Object.entries<Record<string, { responses: object }>>(body.paths))
      if (path.startsWith('/v1/'))
        for (const operation of Object.values(methods))
          for (const status of ['400', '401', '403', '404', '422', '429'])
            assert.ok(status in operation.responses, `${path} ${status}`)
  })

  it('names the scopes of both kinds that an association joins', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const { post } = body.paths['/v1/objects/companies/{entity_id}/associations/{target}/{target_id}']
    assert.deepEqual(post['x-scopes'], ['companies:write', '{target}:write'])
  })

  it('declares If-Match and 412 together, where it is honoured', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const honouring = Object.values<
      Record<string, { operationId: string; responses: object; parameters: { name: string }[] }>
    >(body.paths)
      .flatMap((methods) => Object.values(methods))
      .filter(({ parameters, responses }) => {
        const declared = parameters.some((one) => resolve(body, one).name === 'If-Match')
        assert.equal('412' in responses, declared)
        return declared
      })
      .map(({ operationId }) => operationId)
    for (const id of [
      'updateContact',
      'deleteContact',
      'updateWorkflow',
      'deleteWorkflow',
      'runWorkflow',
      'runWorkflowByName',
    ])
      assert.ok(honouring.includes(id), id)
    assert.ok('ETag' in body.paths['/v1/workflows/{workflow_id}'].get.responses['200'].headers)
  })

  it('names every type that the receiver of webhooks takes', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const { content, description } = body.paths['/webhooks/incoming/{webhook_id}'].post.requestBody
    assert.deepEqual(Object.keys(content), [
      'application/json',
      'application/x-www-form-urlencoded',
      'application/xml',
      'text/xml',
    ])
    assert.match(description, /\+json.*\+xml/)
  })

  it("names each kind's shapes, and shows an example of each", async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const shape = (name: string) => ({ $ref: `#/components/schemas/${name}` })
    const json = (part: { content: Record<string, { schema: object }> }) =>
      part.content['application/json']!.schema
    for (const entity of entityNames) {
      const { object, fields, example } = entities[entity]
      const name = object[0]!.toUpperCase() + object.slice(1)
      const { post } = body.paths[`/v1/objects/${entity}`]
      const { get, patch } = body.paths[`/v1/objects/${entity}/{entity_id}`]
      assert.deepEqual(json(get.responses[200]), shape(name))
      assert.deepEqual(json(post.responses[201]), shape(name))
      assert.equal((json(post.requestBody) as { $ref: string }).$ref, shape(`${name}Create`).$ref)
      assert.equal((json(patch.requestBody) as { $ref: string }).$ref, shape(`${name}Update`).$ref)
      const { properties, examples } = body.components.schemas[name]
      for (const field of Object.keys(fields)) assert.ok(properties[field], field)
      recordSchema(entity).strict().parse(examples[0])
      createSchema(entity).parse(example)
    }
  })

  it('describes the bodies that are taken, and none that are not', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const $defs = JSON.parse(
      JSON.stringify(body.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
    )
    for (const [entity, name, given, isTaken] of [
      ['deals', 'DealCreate', { name: 'x', currency: 'usd' }, true],
      ['deals', 'DealCreate', { name: 'x', currency: 'dollar' }, false],
      ['deals', 'DealCreate', { name: 'x', amount: ' -0012.5 ' }, true],
      ['deals', 'DealCreate', { name: 'x', amount: 12.5 }, true],
      ['deals', 'DealCreate', { name: 'x', amount: null }, true],
      ['deals', 'DealCreate', { name: 'x', amount: '1,5' }, false],
      ['deals', 'DealCreate', { name: 'x', amount: '12345678901234567' }, false],
      ['companies', 'CompanyCreate', { name: 'x', domain: 'https://www.acme.example/about' }, true],
    ] as const) {
      const described = z.fromJSONSchema({ $ref: `#/$defs/${name}`, $defs }).safeParse(given).success
      const taken = createSchema(entity).safeParse(given).success
      assert.deepEqual([described, taken], [isTaken, isTaken], JSON.stringify(given))
    }
    assert.deepEqual(
      body.components.schemas.ContactCreate.anyOf.map(({ required }: Json) => required),
      ['email', 'phone', 'first_name', 'last_name'].map((name) => [name]),
    )
  })

  it('lists the filters of each field with its operators', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    for (const entity of entityNames)
      for (const path of [entity, `contacts/{entity_id}/${entity}`]) {
        const { parameters } = body.paths[`/v1/objects/${path}`].get
        const filters = new Map(
          parameters.map((one: object) => resolve(body, one)).map((one: { name: string }) => [one.name, one]),
        )
        for (const { name, operators, values } of describeKind(entity).fields) {
          if (operators.length === 0 || name === 'custom_fields') continue
          // biome-ignore lint/suspicious/noExplicitAny: JSON
          const { style, schema } = filters.get(name) as any
          const alone = schema.anyOf?.some((one: Json) => one.type === 'string') ?? false
          assert.equal(alone, operators.includes('eq'), name)
          const { $ref } = (schema.anyOf ?? [schema]).find((one: object) => '$ref' in one)
          const shape = body.components.schemas[$ref.split('/').at(-1)]
          assert.deepEqual([style, Object.keys(shape.properties)], ['deepObject', operators], name)
          if (values) assert.deepEqual(schema.anyOf[0].enum, values)
        }
        const custom = filters.get('custom_fields') as Json
        assert.deepEqual([custom.style, custom.explode, custom.schema.type], ['form', true, 'object'])
        const name = new RegExp(custom.schema.propertyNames.pattern)
        assert.ok(
          name.test('custom_fields.tier') && name.test('custom_fields.score[gte]') && !name.test('tier'),
        )
      }
  })

  it('lets a list leave out what `fields` does not name, and says what is always there', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const definitions = JSON.parse(
      JSON.stringify(body.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
    )
    for (const entity of entityNames) {
      const path = `/v1/objects/${entity}`
      const { id } = (await suite.api.request('POST', path, { body: entities[entity].example })).body
      const company = entity === 'companies' ? { name: 'Another' } : { name: 'One' }
      const { id: other } = (await suite.api.request('POST', '/v1/objects/companies', { body: company })).body
      await suite.api.request('POST', `${path}/${id}/associations/companies/${other}`)
      for (const [declared, asked] of [
        [path, path],
        [`/v1/objects/companies/{entity_id}/${entity}`, `/v1/objects/companies/${other}/${entity}`],
      ] as const) {
        const answer = await suite.api.request('GET', `${asked}?fields=id,version`)
        assert.deepEqual(Object.keys(answer.body.data[0]).sort(), ['id', 'object', 'version'])
        const { schema } = body.paths[declared].get.responses[200].content['application/json']
        const name = schema.$ref.split('/').at(-1)
        const checker = z.fromJSONSchema({ $ref: `#/$defs/${name}`, $defs: definitions })
        assert.deepEqual(checker.safeParse(answer.body).error?.issues ?? [], [], asked)
        assert.equal(checker.safeParse({ ...answer.body, data: [{ version: 1 }] }).success, false)
      }
    }
  })

  it('is readable offline: the page loads nothing and runs nothing', async () => {
    const { status, headers, body } = await suite.api.request('GET', '/docs', { key: null })
    assert.equal(status, 200)
    assert.match(headers.get('content-security-policy')!, /default-src 'none'/)
    assert.doesNotMatch(body, /<script|<link|<img|@import|url\(/i)
    for (const { id } of routes) assert.ok(body.includes(`id="${id}"`), id)
    for (const [, id] of body.matchAll(/<a href="#([^"]+)"/g)) assert.ok(body.includes(`id="${id}"`), id)
  })
})

// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = Record<string, any>

/** A part of the document, or what it refers to. */
function resolve(document: Json, part: Json): Json {
  if (!part.$ref) return part
  const steps = String(part.$ref).slice(2).split('/')
  return steps.reduce((whole, step) => whole?.[step], document)
}

const hasExample = (document: Json, media: Json) =>
  media.example !== undefined ||
  media.examples !== undefined ||
  resolve(document, media.schema).examples !== undefined
