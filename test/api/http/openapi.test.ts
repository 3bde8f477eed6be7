import assert from 'node:assert/strict'
import { z } from 'zod'
import { appRoutes } from '../../../api/app/route-table.ts'
import { openApi } from '../../../api/http/openapi.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { describeKind } from '../../../db/model/records/describe.ts'
import type { KindName } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import { createSchema, recordSchema } from '../../../db/model/records/schemas.ts'
import { pascalCase } from '../../../workflows/shared/record-kinds.ts'
import { createExample } from '../../support/example-of.ts'
import { withApi } from '../../support/with-api.ts'

/** In bytes, without the transfer encoding: the mean of all operations, with the components that they share. */
const MAX_PER_OPERATION = 3_800

describe('/openapi.json', () => {
  const suite = withApi()

  it('stays small, and gives every operation an id, a summary, a tag and an example', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const operations = Object.values<Record<string, Json>>(body.paths).flatMap((methods) =>
      Object.values(methods),
    )
    const bytes = Buffer.byteLength(JSON.stringify(body))
    assert.ok(
      bytes < operations.length * MAX_PER_OPERATION,
      `${bytes} bytes, ${operations.length} operations`,
    )
    for (const { operationId, summary, tags, responses } of operations) {
      assert.ok(operationId && summary && tags.length === 1, operationId)
      assert.ok(summary.length <= 60 && !summary.endsWith('.'), summary)
      const [success] = Object.entries<Json>(responses).filter(([status]) => status.startsWith('2'))
      for (const media of Object.values<Json>(success![1].content))
        assert.ok(media.example ?? media.examples, `${operationId} has no example`)
    }
  })

  it('gives components short names that do not differ only by a number', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    for (const components of Object.values<object>(body.components)) {
      const names = Object.keys(components)
      for (const name of names) assert.ok(name.length < 60, name)
      const withoutNumbers = names.map((name) => name.replace(/\d+/g, ''))
      assert.equal(new Set(withoutNumbers).size, names.length)
    }
    for (const name of ['Contact', 'ContactCreate', 'ContactUpdate', 'ContactList', 'RunNode', 'Association'])
      assert.ok(body.components.schemas[name], name)
  })

  it('is made in turns, between which other requests are answered', async () => {
    let turns = 0
    let isMade = false
    const count = () => {
      turns++
      if (!isMade) setImmediate(count)
    }
    setImmediate(count)
    await openApi(routes, appRoutes, '/')
    isMade = true
    assert.ok(turns > 1, `${turns} turns of the event loop`)
  })

  it('describes every operation under a unique id', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    assert.equal(body.openapi, '3.1.0')
    const ids = Object.values(body.paths).flatMap((methods) =>
      Object.values(methods as Record<string, { operationId: string }>).map(({ operationId }) => operationId),
    )
    assert.equal(
      ids.length,
      routes.length + appRoutes.length + 5,
      'and the two of the receiver of webhooks, the links of approvals and the Model Context Protocol',
    )
    assert.equal(new Set(ids).size, ids.length)
  })

  it('says in one table what each role may do', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const [, table] = body.info.description.split('## Roles')
    const rows: string[][] = table
      .split('\n')
      .filter((line: string) => line.startsWith('|'))
      .map((line: string) => line.split('|').map((cell) => cell.trim()))
    const [heads, , ...tags] = rows
    for (const { tag, role, summary } of appRoutes) {
      const row = tags.find(([, name]) => name === tag)!
      const roles = heads!.filter((_, i) => row[i]!.split(' · ').includes(summary))
      assert.deepEqual(roles, [role], summary)
    }
  })

  it('has no dangling reference', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref!)
    for (const $ref of new Set(references)) assert.ok(resolve(body, { $ref }), $ref)
  })

  it('declares every tag, path parameter and header, and has valid examples', async () => {
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
          const { description, headers } = resolve(body, response)
          assert.ok(description, what)
          if (!path.startsWith('/webhooks')) assert.ok('X-Request-Id' in headers, `${what} ${status}`)
        }
      }
  })

  it('gives a valid example of every body', async () => {
    for (const { id, body, example } of [...routes, ...appRoutes]) {
      if (!body) continue
      assert.ok(example, id)
      const parsed = body.safeParse(example)
      assert.deepEqual(parsed.error?.issues ?? [], [], id)
    }
  })

  it('declares the statuses of the contract for every operation of /v1', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    for (const [path, methods] of Object.entries<Record<string, { responses: object }>>(body.paths))
      if (path.startsWith('/v1/'))
        for (const operation of Object.values(methods))
          for (const status of ['400', '401', '403', '404', '422', '429', '431'])
            assert.ok(status in operation.responses, `${path} ${status}`)
  })

  it('describes associations once, for every pair of kinds, with the scopes of both', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const path = '/v1/objects/{entity}/{entity_id}/associations/{target}/{target_id}'
    const paths = Object.keys(body.paths).filter((one) => one.includes('/associations/'))
    assert.deepEqual(paths, [path])
    const { post } = body.paths[path]
    assert.deepEqual(post['x-scopes'], ['{entity}:write', '{target}:write'])
    const kinds = post.parameters.map((one: Json) => resolve(body, one)).slice(0, 3)
    assert.deepEqual(
      kinds.map(({ name, schema }: Json) => [name, schema.enum ?? schema.format]),
      [
        ['entity', kindNames],
        ['entity_id', 'uuid'],
        ['target', kindNames],
      ],
    )
  })

  it('declares If-Match and 412 together, for operations that honour it', async () => {
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

  it('lists every content type that the receiver accepts', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const { content, description } = body.paths['/webhooks/incoming/{webhook_id}'].post.requestBody
    assert.deepEqual(Object.keys(content), [
      'application/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/xml',
      'text/xml',
    ])
    assert.match(description, /\+json.*\+xml/)
  })

  it('names the shapes of each kind, with an example of each', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const shape = (name: string) => ({ $ref: `#/components/schemas/${name}` })
    const json = (part: { content: Record<string, { schema: object }> }) =>
      part.content['application/json']!.schema
    for (const kind of kindNames) {
      const { object, fields, example } = kinds[kind]
      const name = pascalCase(object)
      const { post } = body.paths[`/v1/objects/${kind}`]
      const { get, patch } = body.paths[`/v1/objects/${kind}/{entity_id}`]
      assert.deepEqual(json(get.responses[200]), shape(name))
      assert.deepEqual(json(post.responses[201]), shape(name))
      assert.equal((json(post.requestBody) as { $ref: string }).$ref, shape(`${name}Create`).$ref)
      assert.equal((json(patch.requestBody) as { $ref: string }).$ref, shape(`${name}Update`).$ref)
      const { properties } = body.components.schemas[name]
      for (const field of Object.keys(fields)) assert.ok(properties[field], field)
      const [shown] = Object.values<Json>(get.responses[200].content['application/json'].examples)
      recordSchema(kind).strict().parse(resolve(body, shown!).value)
      createSchema(kind).parse(example)
    }
  })

  it('has request schemas that accept the same bodies as the validation', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const $defs = JSON.parse(
      JSON.stringify(body.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
    )
    for (const [kind, name, given, isTaken] of [
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
      const taken = createSchema(kind).safeParse(given).success
      assert.deepEqual([described, taken], [isTaken, isTaken], JSON.stringify(given))
    }
  })

  it('makes members with defaults optional in requests and required in responses', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const bodies = Object.values<Record<string, Json>>(body.paths).flatMap((methods) =>
      Object.values(methods).flatMap(
        ({ requestBody }) => requestBody?.content['application/json']?.schema ?? [],
      ),
    )
    let defaults = 0
    const seen = new Set<Json>()
    const look = (part: Json) => {
      const schema = resolve(body, part)
      if (seen.has(schema)) return
      seen.add(schema)
      for (const [name, property] of Object.entries<Json>(schema.properties ?? {}))
        if (property.default !== undefined) {
          assert.ok(!schema.required?.includes(name), `${name} is required in ${JSON.stringify(schema)}`)
          defaults++
        }
      const parts = [
        schema.properties ?? {},
        schema.anyOf ?? [],
        schema.oneOf ?? [],
        schema.items ? [schema.items] : [],
      ]
      for (const one of parts.flatMap((inner) => Object.values<Json>(inner))) look(one)
    }
    bodies.forEach(look)
    assert.ok(defaults > 20, `${defaults} defaults`)
    const { schemas } = body.components
    assert.ok(schemas.HmacVerification.required.includes('algorithm'))
    assert.ok(!schemas.HmacVerificationInput.required.includes('algorithm'))
  })

  it('declares each filter with its type and its operators', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    for (const kind of kindNames) {
      const { parameters } = body.paths[`/v1/objects/${kind}`].get
      const filters = new Map<string, Json>(
        parameters.map((one: object) => resolve(body, one)).map((one: Json) => [one.name, one]),
      )
      for (const { name, operators, values } of describeKind(kind).fields) {
        if (operators.length === 0 || name === 'custom_fields') continue
        const { style, schema } = filters.get(name)!
        const [alone] = schema.anyOf ?? []
        assert.equal(alone !== undefined, operators.includes('eq'), name)
        const { $ref } = (schema.anyOf ?? [schema]).find((one: object) => '$ref' in one)
        const shape = body.components.schemas[$ref.split('/').at(-1)]
        assert.deepEqual([style, Object.keys(shape.properties)], ['deepObject', operators], name)
        if (values) assert.deepEqual(alone.enum, values)
      }
      const { style, explode, schema } = filters.get('filters')!
      assert.deepEqual([style, explode, schema.type], ['form', true, 'object'])
      const name = new RegExp(schema.propertyNames.pattern)
      for (const filter of ['custom_fields.tier', 'custom_fields.score[gte]', 'amount[gte]'])
        assert.match(filter, name)
      assert.doesNotMatch('custom_fields.', name)
    }
    const typeOfValue = (entity: string, field: string) => {
      const { parameters } = body.paths[`/v1/objects/${entity}`].get
      const { schema } = parameters
        .map((one: object) => resolve(body, one))
        .find(({ name }: Json) => name === field)
      const [value] = schema.anyOf
      return value.format ?? value.type
    }
    assert.equal(typeOfValue('contacts', 'company_id'), 'uuid')
    assert.equal(typeOfValue('contacts', 'do_not_contact'), 'boolean')
    assert.equal(typeOfValue('contacts', 'created_at'), 'date-time')
    assert.equal(typeOfValue('deals', 'expected_close_date'), 'date')
    assert.equal(typeOfValue('deals', 'amount'), 'decimal')
    assert.equal(typeOfValue('deals', 'probability'), 'integer')
  })

  it('makes list fields optional because of `fields`, except those that are always returned', async () => {
    const { body } = await suite.api.request('GET', '/openapi.json', { key: null })
    const definitions = JSON.parse(
      JSON.stringify(body.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
    )
    const create = async (kind: KindName, values: object) =>
      (await suite.api.request('POST', `/v1/objects/${kind}`, { body: values })).body
    for (const kind of kindNames) {
      const path = `/v1/objects/${kind}`
      const { id } = await createExample(kind, create)
      const company = kind === 'companies' ? { name: 'Another' } : { name: 'One' }
      const { id: other } = (await suite.api.request('POST', '/v1/objects/companies', { body: company })).body
      await suite.api.request('POST', `${path}/${id}/associations/companies/${other}`)
      for (const [declared, asked] of [
        [path, path],
        ['/v1/objects/{entity}/{entity_id}/{target}', `/v1/objects/companies/${other}/${kind}`],
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
})

// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = Record<string, any>

/** A part of the document, with its reference resolved. */
function resolve(document: Json, part: Json): Json {
  if (!part.$ref) return part
  const steps = String(part.$ref).slice(2).split('/')
  return steps.reduce((whole, step) => whole?.[step], document)
}
