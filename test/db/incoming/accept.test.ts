import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { type Acceptance, accept, type IncomingRequest } from '../../../db/incoming/accept.ts'
import { callerKey, findReceivers, type Receiver } from '../../../db/incoming/receiving.ts'
import { createIncomingWebhook } from '../../../db/incoming/webhooks.ts'
import type { AppError } from '../../../db/model/errors.ts'
import { mapPayload } from '../../../db/model/incoming/mapping/map.ts'
import type { Payload } from '../../../db/model/incoming/parse-body.ts'
import { connect } from '../../../db/postgres/connect.ts'
import { isDatabaseUnavailable } from '../../../db/postgres/sql-state.ts'
import { createDefinition } from '../../../db/records/custom-fields/definitions.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { recordsOf, type TestRecords } from '../../support/records.ts'

describe('accepting requests of an incoming webhook', () => {
  let db: TestDatabase
  let records: TestRecords
  let webhook: Receiver
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  beforeEach(async () => {
    const organizationId = await createOrganization(db)
    records = recordsOf(db, organizationId)
    const { id } = await records.tenant(async (tx) => {
      await createDefinition(tx, 'contacts', 'badge', { type: 'text', unique: true })
      return createIncomingWebhook(tx, settings, 'sealed')
    })
    const caller = { webhookId: id, source: '192.0.2.1' }
    webhook = (await findReceivers(db.system, [caller])).get(callerKey(caller))!
  })

  const rule = (from: string, to = from) => ({ from, to, transforms: [] })
  const settings = {
    name: 'Form',
    description: '',
    verification: { type: 'secret' },
    ip_whitelist: [],
    rate_limit: 60,
    burst: 0,
    block: null,
    kind: 'contacts',
    field_mapping: {
      mode: 'manual',
      rules: [rule('name', 'first_name'), rule('email'), rule('badge', 'custom_fields.badge')],
    },
    deduplication: { action: 'Create Anyway', by: 'email' },
    secret_headers: [],
    secret_fields: [],
    workflow_id: null,
    workflow_inputs: {},
    listeners: [],
    trigger_headers: [],
    trigger_query: [],
    dedupe_window: 0,
    response_wait: 0,
    source: null,
    sender: null,
    also_writes: ['companies', 'notes'],
  } satisfies Parameters<typeof createIncomingWebhook>[1]

  /** A request as it is before its transaction: only data. */
  function requestWith(payload: Payload, deliveryId?: string): IncomingRequest {
    return {
      payload,
      mapped: mapPayload(payload, webhook),
      trace: { traceId: randomUUID(), spanId: undefined },
      started: performance.now(),
      log: {
        webhook_id: webhook.id,
        source_ip: '192.0.2.1',
        headers: {},
        content_type: 'application/json',
        payload: JSON.stringify(payload),
        payload_truncated: false,
        payload_rest: null,
        context: null,
        payload_sealed: null,
        payload_size: 1,
        verified: true,
        fingerprint: createHash('sha256')
          .update(deliveryId ?? JSON.stringify(payload))
          .digest(),
        has_delivery_id: deliveryId !== undefined,
      },
    }
  }

  const accepted = (...requests: IncomingRequest[]) => accept(db, webhook, requests)

  /** The places of the requests that each transaction wrote, by the names of their contacts. */
  async function transactions(): Promise<string[]> {
    const { rows } = await db.system.raw<{ rows: { names: string }[] }>(
      `select string_agg(first_name, ' ' order by first_name) as names from contacts
       where organization_id = ? group by xmin::text order by 1`,
      [webhook.organization_id],
    )
    return rows.map(({ names }) => names)
  }

  const logs = () =>
    db
      .system('incoming_logs')
      .where({ webhook_id: webhook.id })
      .orderBy('id')
      .select('action', 'message', 'record_id', 'mapped_data')

  const errorOf = (acceptance: Acceptance) =>
    'error' in acceptance ? (acceptance.error as AppError) : undefined

  it('writes all of them in one transaction, each with its answer and log row', async () => {
    const acceptances = await accepted(...['0', '1', '2'].map((name) => requestWith({ name })))
    assert.deepEqual(await transactions(), ['0 1 2'])
    const rows = await logs()
    for (const [n, acceptance] of acceptances.entries()) {
      assert.ok('answer' in acceptance)
      const { record_id } = acceptance.answer
      assert.deepEqual(acceptance.answer, {
        success: true,
        message: 'contact created',
        record_id,
        entity: 'contact',
        action: 'created',
      })
      assert.equal((await records.get('contacts', record_id!)).first_name, String(n))
      const { mapped_data, ...row } = rows.find((one) => one.record_id === record_id)
      assert.deepEqual(row, { action: 'Created', message: 'contact created', record_id })
      assert.deepEqual([mapped_data.entity, mapped_data.fields.first_name], ['contact', String(n)])
    }
  })

  it('halves those of which one cannot be written: it fails alone, the others are written', async () => {
    await records.create('contacts', { first_name: 'first', custom_fields: { badge: 'taken' } })
    const acceptances = await accepted(
      ...Array.from({ length: 8 }, (_, n) =>
        requestWith({ name: String(n), badge: n === 5 ? 'taken' : `own ${n}` }),
      ),
    )
    assert.deepEqual(
      acceptances.map((one) => errorOf(one)?.type),
      acceptances.map((_, n) => (n === 5 ? 'conflict' : undefined)),
    )
    assert.deepEqual(await transactions(), ['0 1 2 3', '4', '6 7', 'first'])
    assert.equal((await logs()).length, 7)
  })

  it('refuses an invalid one without a transaction, and says what was to be written', async () => {
    const [invalid, valid] = await accepted(
      requestWith({ name: 'No', email: 'none' }),
      requestWith({ name: 'Yes' }),
    )
    assert.equal(errorOf(invalid!)?.type, 'validation_error')
    assert.deepEqual('mapped' in invalid! && invalid.mapped.fields, { first_name: 'No', email: 'none' })
    assert.ok('answer' in valid!)
    assert.deepEqual(await transactions(), ['Yes'])
    assert.equal((await logs()).length, 1)
  })

  it('answers a repeated delivery as the first one, also if its mapping became invalid', async () => {
    const [first] = await accepted(requestWith({ name: 'Once' }, 'one'))
    assert.ok('answer' in first!)
    const [again, invalid, other] = await accepted(
      requestWith({ name: 'Twice' }, 'one'),
      requestWith({ email: 'none' }, 'two'),
      requestWith({ name: 'Other' }, 'three'),
    )
    const { record_id, entity, action } = first.answer
    assert.deepEqual(again, {
      answer: { success: true, message: 'already received', record_id, entity, action },
      isRepeated: true,
      runIds: [],
    })
    assert.equal(errorOf(invalid!)?.type, 'validation_error')
    assert.ok('answer' in other!)
    const [invalidNow] = await accepted(requestWith({ email: 'none' }, 'one'))
    assert.deepEqual(invalidNow, again)
    assert.deepEqual((await transactions()).toSorted(), ['Once', 'Other'])
    // The refused delivery was not claimed: its sender may repeat it.
    assert.ok('answer' in (await accepted(requestWith({ name: 'Valid' }, 'two')))[0]!)
    assert.deepEqual(
      (await logs()).filter(({ action }) => action === 'Skipped').map(({ record_id }) => record_id),
      [record_id, record_id],
    )
  })

  it('fails as a whole while there is no database: fewer would fail as well', async () => {
    const nowhere = connect({ url: 'postgresql://agx@127.0.0.1:1/agx', poolSize: 1 })
    try {
      const acceptances = await accept(nowhere, webhook, [
        requestWith({ name: '1' }),
        requestWith({ name: '2' }),
      ])
      const [error, other] = acceptances.map(errorOf)
      assert.ok(isDatabaseUnavailable(error))
      assert.equal(error, other)
    } finally {
      await nowhere.close()
    }
  })
})
