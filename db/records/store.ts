import { requireVersion } from '../lists/version.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { fillCurrency } from './currency.ts'
import { holdRules } from './custom-fields/rules.ts'
import { claimUnique, freeUnique } from './custom-fields/unique.ts'
import { filledBy, makeLinks, requireLinked, splitLinks } from './given-links.ts'
import { linkPrimaries } from './links.ts'
import { recordNotFound } from './merged.ts'
import { present, shownColumns } from './model/columns.ts'
import { hasUnique } from './model/custom-fields/unique.ts'
import { type EntityName, referencesOf } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import { creation } from './model/prepare.ts'
import type { AgxRecord, RecordInput } from './model/schemas.ts'
import { clearReferencesTo, lockReferencesTo } from './primaries.ts'
import { checkReferences } from './references.ts'
import { lockRecord, type UpdateOptions, unique } from './update.ts'
import { writeRecords } from './write.ts'

export { restoreRecord } from './restore.ts'
export { updateRecord } from './update.ts'

/**
 * Create, read, update and delete of one record. Input is what `createSchema` and `updateSchema` parsed; records go
 * out as the API shows them. Every write puts its history and its event into the same statement.
 */

/**
 * Throws `conflict` for an external_id or a unique custom field in use, `validation_error` for references to nothing
 * and for custom fields that are not as they are defined.
 */
export async function createRecord(
  tx: Tenant,
  entity: EntityName,
  input: RecordInput,
  /** `sole`: it is all that happens in its transaction. */
  { sole = false }: { sole?: boolean } = {},
): Promise<AgxRecord> {
  const kind = entities[entity]
  const { links, fields } = splitLinks(input)
  const values: RecordInput = { ...fields, ...filledBy(links, kind, fields) }
  // Sent together: neither waits for the answer to the other.
  const [rules] = await Promise.all([
    holdRules(tx, entity),
    fillCurrency(tx, kind, values),
    requireLinked(tx, links),
  ])
  const write = creation(tx.actor, kind, values, rules)
  const { record } = write
  await checkReferences(tx, kind, { record })
  const hasMore =
    links.length > 0 || referencesOf(kind).some(([name]) => record[name] !== null) || hasUnique(rules)
  if (sole && !hasMore) tx.last()
  await unique(kind, record, () => writeRecords(tx, kind, [write]))
  await claimUnique(tx, kind, rules, [write])
  await linkPrimaries(tx, kind, [write])
  await makeLinks(tx, { entity, id: record.id }, links)
  return record
}

/** Throws `not_found`. */
export async function getRecord(tx: Tenant, entity: EntityName, id: string): Promise<AgxRecord> {
  const record = await findRecord(tx, entity, id)
  if (!record) throw await recordNotFound(tx, entities[entity], id)
  return record
}

/** In one statement. */
export async function findRecord(tx: Tenant, entity: EntityName, id: string): Promise<AgxRecord | undefined> {
  const kind = entities[entity]
  const row = await tx
    .trx(entity)
    .where({ organization_id: tx.organizationId, id })
    .whereNull('deleted_at')
    .first(shownColumns(kind))
  return row && present(kind, row)
}

/**
 * Soft: it is in no list any more, and nothing refers to it, until it is restored. Throws `not_found`,
 * `version_conflict`.
 */
export async function deleteRecord(
  tx: Tenant,
  entity: EntityName,
  id: string,
  options: Pick<UpdateOptions, 'ifVersion'> = {},
): Promise<{ id: string; object: string; deleted: true; deleted_at: string }> {
  const kind = entities[entity]
  await lockReferencesTo(tx, entity, id)
  const before = await lockRecord(tx, entity, id, 'for update')
  requireVersion(kind.object, before.version, options.ifVersion)
  const at = new Date().toISOString()
  await clearReferencesTo(tx, entity, id)
  const record = { ...before, version: before.version + 1, updated_at: at, updated_by: tx.actor } as AgxRecord
  await Promise.all([
    writeRecords(tx, kind, [{ action: 'deleted', record, changes: {} }]),
    freeUnique(tx, id),
  ])
  return { id, object: kind.object, deleted: true, deleted_at: at }
}
