import { conflict } from '../errors.ts'
import { requireVersion } from '../lists/version.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { fillCurrency } from './currency.ts'
import { holdRules } from './custom-fields/rules.ts'
import { claimUnique } from './custom-fields/unique.ts'
import { linkPrimaries } from './links.ts'
import { recordNotFound } from './merged.ts'
import { present, shownColumns } from './model/columns.ts'
import { hasUnique } from './model/custom-fields/unique.ts'
import { type EntityName, type Kind, referencesOf } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import { change, patched } from './model/prepare.ts'
import type { AgxRecord, RecordInput } from './model/schemas.ts'
import { checkReferences } from './references.ts'
import { writeRecords } from './write.ts'

export interface UpdateOptions {
  /** The versions that the change was made for; undefined for any. */
  ifVersion?: readonly number[] | undefined
  /** It is all that happens in its transaction. */
  sole?: boolean
}

/**
 * Changes what `patch` names: null clears, custom fields are merged key by key. A patch that changes nothing makes no
 * version. Throws `not_found`; `version_conflict` where `ifVersion` does not have the record's; what create throws.
 */
export async function updateRecord(
  tx: Tenant,
  entity: EntityName,
  id: string,
  patch: RecordInput,
  options: UpdateOptions = {},
): Promise<AgxRecord> {
  const kind = entities[entity]
  // Rules before records, as those do who change definitions and then records: nobody waits in a circle.
  const [rules, before] = await Promise.all([
    patch.custom_fields === undefined ? undefined : holdRules(tx, entity),
    lockRecord(tx, entity, id),
  ])
  requireVersion(kind.object, before.version, options.ifVersion)
  const next = patched(before, patch, rules)
  await fillCurrency(tx, kind, next)
  const write = change(tx.actor, kind, before, patch, next)
  if (!write) return before
  const { record, previous } = write
  await checkReferences(tx, kind, { record, only: Object.keys(previous) })
  const hasMore =
    referencesOf(kind).some(([name]) => name in previous) || (rules !== undefined && hasUnique(rules))
  if (options.sole && !hasMore) tx.last()
  await unique(kind, record, () => writeRecords(tx, kind, [write]))
  if (rules) await claimUnique(tx, kind, rules, [write])
  await linkPrimaries(tx, kind, [write])
  return record
}

type Lock = 'for no key update' | 'for update'

/**
 * The record, locked until the transaction ends, so that two updates take turns. Others may go on referring to it,
 * unless it is locked to be deleted. Throws `not_found`.
 */
export async function lockRecord(
  tx: Tenant,
  entity: EntityName,
  id: string,
  lock: Lock = 'for no key update',
): Promise<AgxRecord> {
  const kind = entities[entity]
  const { rows } = await tx.trx.raw<{ rows: Record<string, unknown>[] }>(
    `select ${shownColumns(kind).join(', ')} from ${entity}
     where organization_id = ? and id = ? and deleted_at is null ${lock}`,
    [tx.organizationId, id],
  )
  if (!rows[0]) throw await recordNotFound(tx, kind, id)
  return present(kind, rows[0])
}

/** Those of the records that are there, by id, locked in one order, so that who locks several never waits in a circle. */
export async function lockRecords(
  tx: Tenant,
  entity: EntityName,
  ids: string[],
  lock: Lock = 'for no key update',
): Promise<Map<string, AgxRecord>> {
  const kind = entities[entity]
  const { rows } = await tx.trx.raw<{ rows: Record<string, unknown>[] }>(
    `select ${shownColumns(kind).join(', ')} from ${entity}
     where organization_id = ? and id = any(?) and deleted_at is null order by id ${lock}`,
    [tx.organizationId, ids],
  )
  return new Map(rows.map((row) => [row.id as string, present(kind, row)]))
}

const UNIQUE_VIOLATION = '23505'

export async function unique<T>(kind: Kind, record: AgxRecord, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    throw externalIdTaken(kind, record)
  }
}

export const isUniqueViolation = (error: unknown): boolean =>
  (error as { code?: string }).code === UNIQUE_VIOLATION

export const externalIdTaken = (kind: Kind, record: AgxRecord) =>
  conflict(`another ${kind.object} has the external_id ${record.external_id}`, { param: 'external_id' })
