import { conflict } from '../errors.ts'
import type { Tenant } from '../tenancy.ts'
import type { EntityName } from './kind.ts'
import { entities } from './kinds/index.ts'
import type { AgxRecord, RecordInput } from './schemas.ts'
import { createRecord, updateRecord } from './store.ts'

/** The fields by which a record of this kind can be found for an upsert. */
export const upsertKeys = (entity: EntityName): string[] => [...entities[entity].upsertKeys, 'external_id']

/**
 * The ids of the records with this value (as the schemas read it), oldest first. Until the transaction ends, no other
 * transaction that looks by the same value gets past here, so that "create if there is none" makes one record, however
 * many ask at once.
 */
export async function findByKey(
  tx: Tenant,
  entity: EntityName,
  by: string,
  value: string,
): Promise<string[]> {
  const key = by === 'email' ? value.toLowerCase() : value
  await tx.trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    `${tx.organizationId} ${entity} ${by} ${key}`,
  ])
  const rows = await tx
    .trx(entity)
    .where({ organization_id: tx.organizationId, [by === 'email' ? 'email_lower' : by]: key })
    .whereNull('deleted_at')
    .orderBy([{ column: 'created_at' }, { column: 'id' }])
    .limit(100)
    .select<{ id: string }[]>('id')
  return rows.map((row) => row.id)
}

/**
 * Updates the record whose `by` has the input's value, or creates it. `input` is what `createSchema` parsed.
 * Throws `conflict` with the candidates where several match; what create and update throw.
 */
export async function upsertRecord(
  tx: Tenant,
  entity: EntityName,
  by: string,
  input: RecordInput,
  given: RecordInput = input,
): Promise<{ record: AgxRecord; created: boolean }> {
  const value = input[by]
  if (typeof value !== 'string') return { record: await createRecord(tx, entity, input), created: true }
  const ids = await findByKey(tx, entity, by, value)
  if (ids.length > 1)
    throw conflict(`${ids.length} ${entity} have this ${by}`, {
      param: by,
      candidates: ids.map((id) => ({ object: entities[entity].object, id })),
    })
  if (ids.length === 0) return { record: await createRecord(tx, entity, input), created: true }
  const { associations: _, ...patch } = given
  return { record: await updateRecord(tx, entity, ids[0]!, patch), created: false }
}
