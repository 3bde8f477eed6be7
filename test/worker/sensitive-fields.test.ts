import assert from 'node:assert/strict'
import { createKey } from '../support/api.ts'
import { tenantTables } from '../support/every-table.ts'
import { importsOf } from '../support/imports.ts'
import { type App, signIn } from '../support/session.ts'
import { until } from '../support/until.ts'
import { withApiAndWorker } from '../support/with-api.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = any

/** Each is written in one way. */
const SSN = {
  create: 'ssn-078-05-1101',
  update: 'ssn-078-05-1102',
  batch: 'ssn-078-05-1103',
  upsert: 'ssn-078-05-1104',
  import: 'ssn-078-05-1105',
  refused: 'ssn-078-05-1106',
  webhook: 'ssn-078-05-1107',
  automatic: 'ssn-078-05-1108',
}
const MASK = /^\[masked:[0-9a-v]{12}\]$/

describe('sensitive custom fields', function () {
  this.timeout(60_000)
  const on = withApiAndWorker()
  let app: App
  let reader: string

  const send = async (method: string, path: string, body?: object, key?: string): Promise<Json> => {
    const answer = await on.api.request(method, path, { ...(body && { body }), ...(key && { key }) })
    return { http: answer.status, ...answer.body }
  }
  const contacts = (method: string, path = '', body?: object) =>
    send(method, `/v1/objects/contacts${path}`, body)
  const create = (email: string, ssn: string) =>
    contacts('POST', '', { email, custom_fields: { ssn, tier: 'gold' } })
  const reveal = async (id: string) => {
    const found = await contacts('POST', `/${id}/reveal`)
    assert.equal(found.http, 200, JSON.stringify(found))
    return found.custom_fields
  }
  const byEmail = async (email: string) => (await contacts('GET', `?email=${email}`)).data[0]
  const revealedOf = async (email: string) => reveal((await byEmail(email)).id)

  before(async () => {
    app = await signIn(on.db, on.api)
    const scopes = ['contacts:write', 'workflows:run'] as const
    reader = (await createKey(on.db, on.api.organizationId, { scopes: [...scopes] })).key
    const defined = await send('POST', '/v1/custom-fields/contacts', {
      name: 'ssn',
      type: 'text',
      sensitive: true,
    })
    assert.deepEqual([defined.http, defined.sensitive], [201, true])
  })

  /** The tables that have a text, but for the file of the import itself. */
  const placesWith = (text: string) =>
    on.db.asOwner(async (client) => {
      const found: string[] = []
      for (const { name, isView } of await tenantTables(client)) {
        if (isView || name === 'import_pieces') continue
        const { rowCount } = await client.query(`select from ${name} t where t::text like $1 limit 1`, [
          `%${text}%`,
        ])
        if (rowCount) found.push(name)
      }
      return found
    })

  it('are masked wherever they are written, and shown to who may see them', async () => {
    await send('POST', '/v1/workflows', {
      spec: 'name: On contact\ntrigger: {type: event, events: [contact.created]}\nnodes:\n  note:\n    type: set_fields\n    config: {fields: {ssn: "{{ trigger.record.custom_fields.ssn }}"}}\n',
    }).then(({ workflow_id }) => send('POST', `/v1/workflows/${workflow_id}/activate`))
    const made = await create('create@example.com', SSN.create)
    assert.match(made.custom_fields.ssn, MASK)
    assert.equal(made.custom_fields.tier, 'gold')
    assert.deepEqual(await reveal(made.id), { ssn: SSN.create })

    const changed = await contacts('PATCH', `/${made.id}`, { custom_fields: { ssn: SSN.update } })
    assert.match(changed.custom_fields.ssn, MASK)
    assert.notEqual(changed.custom_fields.ssn, made.custom_fields.ssn)
    // A client that sends back what it read changes nothing.
    const same = await contacts('PATCH', `/${made.id}`, { custom_fields: changed.custom_fields })
    assert.equal(same.version, changed.version)
    assert.deepEqual(await reveal(made.id), { ssn: SSN.update })
    // An equal value counts as a change: else a writer could find it out by trying.
    const again = await contacts('PATCH', `/${made.id}`, { custom_fields: { ssn: SSN.update } })
    assert.equal(again.version, changed.version + 1)
    const reverted = await contacts('POST', `/${made.id}/revert`, { version: 1 })
    assert.equal(reverted.custom_fields.ssn, made.custom_fields.ssn)
    assert.deepEqual(await reveal(made.id), { ssn: SSN.create })

    await contacts('POST', '/batch', {
      operations: [
        { op: 'create', data: { email: 'batch@example.com', custom_fields: { ssn: SSN.batch } } },
        {
          op: 'upsert',
          by: 'email',
          data: { email: 'upsert@example.com', custom_fields: { ssn: SSN.upsert } },
        },
      ],
    })
    assert.deepEqual(await revealedOf('batch@example.com'), { ssn: SSN.batch })
    assert.deepEqual(await revealedOf('upsert@example.com'), { ssn: SSN.upsert })

    const imports = importsOf(on.api)
    const csv = `email,ssn\nimport@example.com,${SSN.import}\nno address,${SSN.refused}\n`
    const imported = await imports.run({ entity: 'contacts' }, csv)
    assert.deepEqual([imported.progress.created, imported.progress.failed], [1, 1], JSON.stringify(imported))
    assert.deepEqual(imported.file.columns[1].samples, [])
    assert.doesNotMatch(await imports.errors(imported.id), /ssn-/)
    assert.deepEqual(await revealedOf('import@example.com'), { ssn: SSN.import })

    for (const [way, field_mapping] of [
      ['automatic', { mode: 'automatic' }],
      [
        'webhook',
        {
          mode: 'manual',
          rules: [
            { from: 'person.mail', to: 'email' },
            { from: 'person.number', to: 'custom_fields.ssn', transforms: [{ type: 'trim' }] },
          ],
        },
      ],
    ] as const) {
      const { body: webhook } = await app('POST', '/webhooks/incoming', { name: way, field_mapping })
      const ssn = SSN[way]
      const mail = `${way}@example.com`
      const answer = await fetch(webhook.url.replace(/^https?:\/\/[^/]+/, on.api.url), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Webhook-Secret': webhook.secret },
        body: JSON.stringify(
          way === 'automatic'
            ? { email: mail, custom_fields: { ssn }, said: `it is ${ssn}` }
            : { person: { mail, number: ` ${ssn} ` }, said: `it is ${ssn}` },
        ),
      })
      assert.equal(answer.status, 200, await answer.text())
      assert.deepEqual(await revealedOf(mail), { ssn }, way)
    }

    await until(async () => {
      const { data } = await send('GET', '/v1/runs?status=completed')
      return data.length >= 5
    })
    for (const [way, ssn] of Object.entries(SSN)) assert.deepEqual(await placesWith(ssn), [], way)
  })

  it('are revealed with a scope only, and the audit log says to whom', async () => {
    const { id } = await create('scope@example.com', 'ssn-2')
    const { http, error } = await send('POST', `/v1/objects/contacts/${id}/reveal`, undefined, reader)
    assert.deepEqual([http, error.type], [403, 'insufficient_scope'])
    assert.match(error.message, /records:reveal/)
    await reveal(id)
    const { body } = await app('GET', '/audit-log?action=record.revealed&limit=1')
    assert.deepEqual(
      [body.data[0].target.id, body.data[0].details],
      [id, { entity: 'contacts', fields: ['ssn'] }],
    )
  })

  it('go with a merge, a restore and a deletion, and not to another record', async () => {
    const [winner, loser] = [
      await contacts('POST', '', { email: 'w@example.com' }),
      await create('l@example.com', 'ssn-3'),
    ]
    const copied = await contacts('PATCH', `/${winner.id}`, {
      custom_fields: { ssn: loser.custom_fields.ssn },
    })
    assert.deepEqual(
      [copied.http, copied.detail[0].msg],
      [422, 'is the mask of a sensitive value, not the value'],
    )
    assert.equal((await create('x@example.com', loser.custom_fields.ssn)).http, 422)
    await contacts('POST', `/${winner.id}/merge`, { from: loser.id })
    assert.deepEqual(await reveal(winner.id), { ssn: 'ssn-3' })
    await contacts('DELETE', `/${winner.id}`)
    assert.equal((await contacts('POST', `/${winner.id}/reveal`)).http, 404)
    await contacts('POST', `/${winner.id}/restore`)
    assert.deepEqual(await reveal(winner.id), { ssn: 'ssn-3' })
    await contacts('PATCH', `/${winner.id}`, { custom_fields: { ssn: null } })
    assert.deepEqual(await reveal(winner.id), {})
  })

  it('cannot be filtered, sorted by, found, or written by a bulk job', async () => {
    const { id } = await create('find@example.com', 'ssn-4-unique-word')
    for (const query of [
      'custom_fields.ssn=x',
      'custom_fields.ssn[starts_with]=s',
      'sort=custom_fields.ssn',
    ]) {
      const { http, detail } = await contacts('GET', `?${query}`)
      assert.equal(http, 422, query)
      assert.match(detail[0].msg, /is sensitive/)
    }
    assert.equal(
      (await contacts('GET', '?custom_fields.ssn[is_null]=false&email=find@example.com')).data[0].id,
      id,
    )
    assert.deepEqual((await contacts('GET', '?q=ssn-4-unique-word')).data, [])
    const bulk = { action: 'update', query: {}, data: { custom_fields: { ssn: 'x' } } }
    assert.match((await contacts('POST', '/bulk', bulk)).detail[0].msg, /is sensitive/)
  })

  it('are checked as any value, and are defined before there are values, for good', async () => {
    const define = (body: object) => send('POST', '/v1/custom-fields/contacts', body)
    assert.equal((await define({ name: 'born', type: 'date', sensitive: true })).http, 201)
    const { detail } = await contacts('POST', '', { last_name: 'X', custom_fields: { born: 'soon' } })
    assert.match(detail[0].msg, /valid date/)
    const { id } = await contacts('POST', '', { last_name: 'X', custom_fields: { born: '2001-02-03' } })
    assert.deepEqual(await reveal(id), { born: '2001-02-03' })
    for (const [body, at] of [
      [{ name: 'a', type: 'boolean', sensitive: true }, 'sensitive'],
      [{ name: 'a', type: 'text', sensitive: true, unique: true }, 'unique'],
      [{ name: 'a', type: 'text', sensitive: true, default: 'x' }, 'default'],
    ] as const)
      assert.deepEqual(
        (await define(body)).detail.map(({ loc }: Json) => loc.at(-1)),
        [at],
      )
    const patch = (body: object) => send('PATCH', '/v1/custom-fields/contacts/born', body)
    assert.equal((await patch({ sensitive: false })).http, 422)
    assert.equal((await patch({ type: 'text' })).http, 422)
    assert.equal((await patch({ label: 'Born' })).http, 200)
    await contacts('POST', '', { last_name: 'X', custom_fields: { iban: 'DE00' } })
    assert.equal((await define({ name: 'iban', type: 'text', sensitive: true })).http, 409)
    await send('DELETE', '/v1/custom-fields/contacts/born?delete_values=true')
    assert.equal(await on.db.system('sensitive_values').where({ name: 'born' }).first(), undefined)
  })
})
