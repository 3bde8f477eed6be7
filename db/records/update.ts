import { isDeepStrictEqual } from 'node:util'
import { conflict, invalid, notFound } from '../errors.ts'
import type { Tenant } from '../tenancy.ts'
import { requireVersion } from '../version.ts'
import { present, shownColumns, writableColumns } from './columns.ts'
import { defaultCurrency } from './currency.ts'
import { mergeCustomFields } from './custom-fields.ts'
import type { EntityName, Kind } from './kind.ts'
import { entities } from './kinds/index.ts'
import { linkPrimaries } from './links.ts'
import { checkReferences } from './references.ts'
import type { AgxRecord, RecordInput } from './schemas.ts'
import { writeRecord } from './write.ts'

export interface UpdateOptions {
  /** The versions that the change was made for; undefined for any. */
  ifVersion?: readonly number[] | undefined
  /** Leaves the links of references that are cleared: what they point to is deleted, and may be restored. */
  keepLinks?: boolean
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
  const before = await lockRecord(tx, entity, id)
  requireVersion(kind.object, before.version, options.ifVersion)
  const next: Record<string, unknown> = { ...before, ...patch }
  if (patch.custom_fields) next.custom_fields = mergeCustomFields(before.custom_fields, patch.custom_fields)
  else if (patch.custom_fields === null) next.custom_fields = {}
  Object.assign(next, await defaultCurrency(tx, kind, next))
  const changed = writableColumns(kind).filter(
    (column) => !isDeepStrictEqual(before[column], next[column] ?? null),
  )
  if (changed.length === 0) return before
  if (kind.atLeastOneOf && !kind.atLeastOneOf.some((name) => next[name] != null))
    throw invalid([
      {
        loc: ['body', kind.atLeastOneOf[0]!],
        msg: `at least one of ${kind.atLeastOneOf.join(', ')} is required`,
        type: 'missing',
      },
    ])
  const record = {
    ...before,
    ...Object.fromEntries(changed.map((column) => [column, next[column] ?? null])),
    version: before.version + 1,
    updated_at: new Date().toISOString(),
    updated_by: tx.actor,
  } as AgxRecord
  const previous = Object.fromEntries(changed.map((column) => [column, before[column]]))
  const changes = Object.fromEntries(
    changed.map((column) => [column, { from: before[column], to: record[column] }]),
  )
  await checkReferences(tx, kind, record, changed)
  await unique(kind, record, () => writeRecord(tx, kind, { action: 'updated', record, changes, previous }))
  await linkPrimaries(tx, kind, record, previous, options.keepLinks)
  return record
}

/**
 * The record, locked until the transaction ends, so that two updates take turns. Others may go on referring to it,
 * unless it is locked to be deleted. Throws `not_found`.
 */
export async function lockRecord(
  tx: Tenant,
  entity: EntityName,
  id: string,
  lock: 'for no key update' | 'for update' = 'for no key update',
): Promise<AgxRecord> {
  const kind = entities[entity]
  const { rows } = await tx.trx.raw<{ rows: Record<string, unknown>[] }>(
    `select ${shownColumns(kind).join(', ')} from ${entity}
     where organization_id = ? and id = ? and deleted_at is null ${lock}`,
    [tx.organizationId, id],
  )
  if (!rows[0]) throw notFound(kind.object)
  return present(kind, rows[0])
}

const UNIQUE_VIOLATION = '23505'

export async function unique<T>(kind: Kind, record: AgxRecord, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if ((error as { code?: string }).code !== UNIQUE_VIOLATION) throw error
    throw conflict(`another ${kind.object} has the external_id ${record.external_id}`, {
      param: 'external_id',
    })
  }
}
