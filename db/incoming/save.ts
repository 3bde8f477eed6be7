import type { Tenant } from '../postgres/tenancy.ts'
import { companiesNamed } from '../records/companies.ts'
import { createRecord } from '../records/create.ts'
import { findByKey } from '../records/find-by-key.ts'
import type { EntityName } from '../records/model/kind.ts'
import { entities } from '../records/model/kinds/index.ts'
import { createSchema, type RecordInput } from '../records/model/schemas.ts'
import { recordOf } from '../records/sets.ts'
import { updateSet } from '../records/update.ts'
import { upsertRecord } from '../records/upsert.ts'
import type { Mapped } from './mapping/types.ts'
import { ENTITY_OF, type IncomingWebhook } from './types.ts'

export interface Saved {
  action: 'created' | 'updated' | 'skipped'
  record: Record<string, unknown> & { id: string }
}

type Settings = Pick<IncomingWebhook, 'target_entity' | 'deduplication'>

/** How the values of a payload join those of an existing record. */
const ADDING = { addressParts: true, tags: true } as const

/**
 * Writes the mapped record by the webhook's deduplication rule. If several records have the key, the oldest matches; a
 * payload without the key creates a record. A mapped note is added unless the payload is skipped.
 * Throws `validation_error`, `conflict`.
 */
export async function saveMapped(tx: Tenant, webhook: Settings, mapped: Mapped): Promise<Saved> {
  const saved = await saveRecord(tx, webhook, mapped)
  if (mapped.note?.trim() && saved.action !== 'skipped')
    await addNote(tx, ENTITY_OF[webhook.target_entity], saved.record.id, mapped.note)
  return saved
}

/** Writes the mapped values to the record that an earlier writing of the same payload made. Throws not_found, too. */
export async function updateMapped(
  tx: Tenant,
  webhook: Settings,
  mapped: Mapped,
  id: string,
): Promise<Saved> {
  const fields: RecordInput = { ...mapped.fields, ...(await companyOf(tx, mapped)) }
  const update = { id, patch: changes(fields, mapped), adding: ADDING }
  const record = recordOf(await updateSet(tx, ENTITY_OF[webhook.target_entity], [update]))
  return { action: 'updated', record }
}

async function saveRecord(tx: Tenant, webhook: Settings, mapped: Mapped): Promise<Saved> {
  const entity = ENTITY_OF[webhook.target_entity]
  const { action } = webhook.deduplication
  const by = keyFieldOf(webhook)
  if (action === 'Skip') {
    const [id] = await findByKey(tx, entity, by, mapped.fields)
    if (id) return { action: 'skipped', record: { id } }
  }
  const fields: RecordInput = { ...mapped.fields, ...(await companyOf(tx, mapped)) }
  // The id of a known sender identifies duplicates; here they are wanted.
  if (action === 'Create Anyway' && mapped.sender) delete fields.external_id
  if (action !== 'Update') return { action: 'created', record: await createRecord(tx, entity, fields) }
  const options = { takesOldest: true, adding: ADDING }
  const { record, created } = await upsertRecord(tx, entity, by, fields, changes(fields, mapped), options)
  return { action: created ? 'created' : 'updated', record }
}

/** The field whose value identifies duplicates. */
function keyFieldOf({ target_entity, deduplication: { by } }: Settings): string {
  if (by.startsWith('custom_fields.')) return by
  return by === 'email' && entities[ENTITY_OF[target_entity]].fields.email ? 'email' : 'external_id'
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
