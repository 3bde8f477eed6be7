import { findOldestCompany } from '../../db/incoming/dedupe.ts'
import type { Receiver } from '../../db/incoming/receiving.ts'
import { ENTITY_OF } from '../../db/incoming/types.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { createRecord } from '../../db/records/create.ts'
import { lockFieldRules } from '../../db/records/custom-fields/rules.ts'
import { finderBy } from '../../db/records/find-by-key.ts'
import { lockRecords } from '../../db/records/lock.ts'
import type { EntityName } from '../../db/records/model/kind.ts'
import { entities } from '../../db/records/model/kinds/index.ts'
import { createSchema } from '../../db/records/model/schemas.ts'
import { updateRecord } from '../../db/records/update.ts'
import type { Mapped } from './mapping/types.ts'

export interface Saved {
  action: 'created' | 'updated' | 'skipped'
  record: Record<string, unknown> & { id: string }
}

/**
 * Writes what a payload was mapped to, by the webhook's deduplication rule: where several records have the key the
 * oldest is it, where the payload has no key a record is made. What somebody wrote becomes a note to it, but for a
 * payload that is skipped. Throws validation_error.
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
  const key = mapped.fields[by]
  const existing =
    action !== 'Create Anyway' && typeof key === 'string' ? await findOldest(tx, entity, by, key) : undefined
  if (existing && action === 'Skip') return { action: 'skipped', record: existing }

  const fields = { ...mapped.fields }
  if (mapped.company_name?.trim()) fields.company_id = await findOrCreateCompany(tx, mapped.company_name)
  if (!existing) return { action: 'created', record: await record(createRecord(tx, entity, fields)) }
  const patch = changes(fields, mapped, existing)
  return { action: 'updated', record: await record(updateRecord(tx, entity, existing.id, patch)) }
}

/** Held until the transaction ends, so that nobody deletes it meanwhile. */
async function findOldest(tx: Tenant, entity: EntityName, by: string, key: string) {
  const finder = await finderBy(tx, entity, by)
  const wanted = finder.keyOf(key)!
  const ids = (await finder.find([wanted])).get(wanted) ?? []
  if (ids.length === 0) return undefined
  // Rules before records, as everywhere.
  await lockFieldRules(tx, entity)
  for (const id of ids) {
    const found = (await lockRecords(tx, entity, [id])).get(id)
    if (found) return found as Saved['record']
  }
  return undefined
}

/**
 * Of the create shape only what the payload says: its defaults are for new records, and would undo what people have
 * set. Tags are added, and of an address the parts that are given.
 */
function changes(fields: Mapped['fields'], mapped: Mapped, before: Saved['record']) {
  const given = Object.entries(fields).filter(([field]) => comesFromPayload(field, mapped))
  return Object.fromEntries(
    given.map(([field, value]) => {
      const old = before[field]
      if (field === 'tags' && Array.isArray(value) && Array.isArray(old))
        return [field, [...new Set([...old, ...value])]]
      if (field === 'address' && old !== null) return [field, { ...Object(old), ...Object(value) }]
      return [field, value]
    }),
  )
}

function comesFromPayload(field: string, mapped: Mapped): boolean {
  const source = field === 'company_id' ? 'company_name' : field
  return Object.keys(mapped.sources).some((name) => name === source || name.startsWith(`${source}.`))
}

async function findOrCreateCompany(tx: Tenant, name: string): Promise<string> {
  return (
    (await findOldestCompany(tx, name)) ??
    (await record(createRecord(tx, 'companies', createSchema('companies').parse({ name })))).id
  )
}

async function addNote(tx: Tenant, entity: EntityName, id: string, text: string): Promise<void> {
  const note = { body: text, associations: [{ object: entity, id }] }
  await createRecord(tx, 'notes', createSchema('notes').parse(note))
}

/** The store gives records of every kind; each has an id. */
const record = async (given: Promise<unknown>) => (await given) as Saved['record']
