import type { Tenant } from '../postgres/tenancy.ts'
import { companiesNamed } from '../records/companies.ts'
import { createRecord } from '../records/create.ts'
import { findByKey } from '../records/find-by-key.ts'
import type { EntityName } from '../records/model/kind.ts'
import { entities } from '../records/model/kinds/index.ts'
import { createSchema, type RecordInput } from '../records/model/schemas.ts'
import { upsertRecord } from '../records/upsert.ts'
import type { Mapped } from './mapping/types.ts'
import type { Receiver } from './receiving.ts'
import { ENTITY_OF } from './types.ts'

export interface Saved {
  action: 'created' | 'updated' | 'skipped'
  record: Record<string, unknown> & { id: string }
}

/**
 * Writes the mapped record by the webhook's deduplication rule. If several records have the key, the oldest matches; a
 * payload without the key creates a record. A mapped note is added unless the payload is skipped.
 * Throws `validation_error`, `conflict`.
 */
export async function saveMapped(tx: Tenant, webhook: Receiver, mapped: Mapped): Promise<Saved> {
  const saved = await saveRecord(tx, webhook, mapped)
  if (mapped.note?.trim() && saved.action !== 'skipped')
    await addNote(tx, ENTITY_OF[webhook.target_entity], saved.record.id, mapped.note)
  return saved
}

async function saveRecord(tx: Tenant, webhook: Receiver, mapped: Mapped): Promise<Saved> {
  const entity = ENTITY_OF[webhook.target_entity]
  const { action } = webhook.deduplication
  const by = entities[entity].fields.email ? webhook.deduplication.by : 'external_id'
  if (action === 'Skip') {
    const [id] = await findByKey(tx, entity, by, mapped.fields)
    if (id) return { action: 'skipped', record: { id } }
  }
  const fields: RecordInput = { ...mapped.fields, ...(await companyOf(tx, mapped)) }
  // The id of a known sender identifies duplicates; here they are wanted.
  if (action === 'Create Anyway' && mapped.sender) delete fields.external_id
  if (action !== 'Update') return { action: 'created', record: await createRecord(tx, entity, fields) }
  const options = { takesOldest: true, adding: { addressParts: true, tags: true } } as const
  const { record, created } = await upsertRecord(tx, entity, by, fields, changes(fields, mapped), options)
  return { action: created ? 'created' : 'updated', record }
}

/** The fields from the payload only: the defaults of a new record must not change an existing one. */
const changes = (fields: RecordInput, mapped: Mapped): RecordInput =>
  Object.fromEntries(Object.entries(fields).filter(([field]) => comesFromPayload(field, mapped)))

function comesFromPayload(field: string, mapped: Mapped): boolean {
  const source = field === 'company_id' ? 'company_name' : field
  return Object.keys(mapped.sources).some((name) => name === source || name.startsWith(`${source}.`))
}

async function companyOf(tx: Tenant, { company_name }: Mapped): Promise<{ company_id?: string }> {
  if (!company_name?.trim()) return {}
  const input = createSchema('companies').parse({ name: company_name })
  const [company] = await companiesNamed(tx, [input])
  if ('error' in company!) throw company.error
  return { company_id: company!.id }
}

async function addNote(tx: Tenant, entity: EntityName, id: string, text: string): Promise<void> {
  const note = { body: text, associations: [{ object: entity, id }] }
  await createRecord(tx, 'notes', createSchema('notes').parse(note))
}
