import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type Applied, applyAll, type ToApply } from '../../../db/incoming/apply.ts'
import { fitted } from '../../../db/model/incoming/fit.ts'
import { mapPayload } from '../../../db/model/incoming/mapping/map.ts'
import type { Payload } from '../../../db/model/incoming/parse-body.ts'
import type { IncomingWebhook } from '../../../db/model/incoming/types.ts'
import { createDefinition } from '../../../db/records/custom-fields/definitions.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { random } from '../../support/random.ts'
import { recordsOf } from '../../support/records.ts'

const ACTIONS = ['Skip', 'Update', 'Create Anyway'] as const
const KEYS = ['email', 'external_id', 'custom_fields.badge', 'payload.order.ref']
const BATCH = 15

describe('payloads that are written together', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  for (const [n, action] of ACTIONS.entries())
    for (const [m, by] of KEYS.entries()) {
      const seed = 10 * n + m
      it(`leave what they leave one after the other: ${action} by ${by} (seed ${seed})`, async () => {
        const webhook = webhookWith({ action, by })
        const payloads = Array.from({ length: BATCH }, payloadsOf(seed))
        const together = await written(payloads, webhook, BATCH)
        const alone = await written(payloads, webhook, 1)
        assert.deepEqual(together, alone)
        assert.ok(together.records.contacts!.length > 2)
      })
    }

  /**
   * The rows that payloads create in an organization, written in transactions of `size` payloads. Ids become numbers.
   */
  async function written(payloads: Payload[], webhook: IncomingWebhook, size: number) {
    const organizationId = await createOrganization(db)
    const { tenant } = recordsOf(db, organizationId)
    await tenant((tx) => createDefinition(tx, 'contacts', 'badge', { type: 'text', unique: true }))
    const all: ToApply[] = payloads.map((payload) => ({
      payload,
      mapped: fitted(webhook, mapPayload(payload, webhook)),
    }))
    const applied: Applied[] = []
    for (let at = 0; at < all.length; at += size)
      applied.push(...(await tenant((tx) => applyAll(tx, webhook, all.slice(at, at + size)))))
    const places = new Map<string, string>()
    for (const { record } of applied)
      places.set(record!.id, places.get(record!.id) ?? `contact ${places.size}`)
    const rowsOf = (table: string, columns: string[]) =>
      db.system(table).where({ organization_id: organizationId }).orderBy(columns).select<Row[]>(columns)
    for (const { id, name } of await rowsOf('companies', ['name', 'id'])) places.set(id!, `company ${name}`)
    for (const { id, body } of await rowsOf('notes', ['body', 'id'])) places.set(id!, `note ${body}`)
    const shown = (value: unknown) =>
      JSON.stringify(value).replaceAll(UUID, (id) => places.get(id) ?? assert.fail(`unknown id ${id}`))
    const contents = async (table: string, columns: string[]) =>
      (await rowsOf(table, columns)).map(shown).toSorted()
    const fields = ['first_name', 'email', 'phone', 'company_id', 'tags', 'external_id', 'custom_fields']
    return {
      answers: applied.map(({ action, record, warnings }) => shown([action, record!.id, warnings])),
      records: {
        contacts: await contents('contacts', ['id', 'version', 'search_text', ...fields]),
        companies: await contents('companies', ['name', 'version']),
        notes: await contents('notes', ['body', 'version']),
      },
      links: (await rowsOf('associations', ['a_id', 'b_id']))
        .map(({ a_id, b_id }) => [shown(a_id), shown(b_id)].toSorted().join())
        .toSorted(),
      unique: await contents('custom_field_values', ['name', 'value_key', 'record_id']),
      history: (await contents('record_history', ['record_id', 'version', 'action', 'changes'])).map(
        withoutTimes,
      ),
      events: (await contents('events', ['subject_id', 'name', 'previous'])).map(withoutTimes),
    }
  }
})

type Row = Record<string, string>

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

const withoutTimes = (text: string) => text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')

/** Payloads of a few people and companies, so that some have the same keys. */
function payloadsOf(seed: number): () => Payload {
  const { next, pick } = random(seed)
  const maybe = (fields: () => object) => (next() < 0.6 ? fields() : {})
  return () => ({
    first_name: pick(['Ada', 'Grace', 'Edsger']),
    ...maybe(() => ({ email: `${pick(['one', 'One', 'two', 'three'])}@x.test` })),
    ...maybe(() => ({ phone: pick(['+41446681800', '+41446681801']) })),
    ...maybe(() => ({ company: pick(['Acme', 'ACME', 'Initech']) })),
    ...maybe(() => ({ message: `note ${Math.floor(next() * 1_000)}` })),
    ...maybe(() => ({ tags: pick([['vip'], ['vip', 'new'], []]) })),
    ...maybe(() => ({ order: { ref: pick(['r1', 'r2', 'r3']) } })),
    ...maybe(() => ({ badge: pick(['b1', 'b2', 'b3']) })),
    ...maybe(() => ({ crm: pick(['c1', 'c2', 'c3']) })),
  })
}

/** `badge` and external_id are unique: only the key of the deduplication may repeat. */
function webhookWith(deduplication: IncomingWebhook['deduplication']): IncomingWebhook {
  const rule = (from: string, to = from) => ({ from, to, transforms: [] })
  const { action, by } = deduplication
  const isKey = (field: string) => action !== 'Create Anyway' && by === field
  return {
    id: randomUUID(),
    name: 'Form',
    kind: 'contacts',
    deduplication,
    workflow_id: null,
    workflow_inputs: {},
    field_mapping: {
      mode: 'manual',
      rules: [
        ...['first_name', 'email', 'phone', 'tags'].map((name) => rule(name)),
        rule('company', 'company_name'),
        rule('message', 'note_content'),
        ...(isKey('custom_fields.badge') ? [rule('badge', 'custom_fields.badge')] : []),
        ...(isKey('external_id') ? [rule('crm', 'external_id')] : []),
      ],
    },
  } as unknown as IncomingWebhook
}
