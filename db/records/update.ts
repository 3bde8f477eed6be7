import { isDeepStrictEqual } from 'node:util'
import { AppError, conflict, invalid, notFound } from '../errors.ts'
import type { Tenant } from '../tenancy.ts'
import { present, shownColumns, writableColumns } from './columns.ts'
import type { EntityName, Kind } from './kind.ts'
import { entities } from './kinds/index.ts'
import { linkPrimaries } from './links.ts'
import type { AgxRecord, RecordInput } from './schemas.ts'
import { writeRecord } from './write.ts'

/**
 * Changes what `patch` names: null clears, custom fields are merged key by key. A patch that changes nothing makes no
 * version. Throws `not_found`; `version_conflict` where `ifVersion` is not the record's; what create throws.
 */
export async function updateRecord(
  tx: Tenant,
  entity: EntityName,
  id: string,
  patch: RecordInput,
  options: { ifVersion?: number } = {},
): Promise<AgxRecord> {
  const kind = entities[entity]
  const before = await lockRecord(tx, entity, id)
  checkVersion(before, options.ifVersion)
  const next: Record<string, unknown> = { ...before, ...patch }
  if (patch.custom_fields)
    next.custom_fields = withoutNulls({
      ...(before.custom_fields as object),
      ...(patch.custom_fields as object),
    })
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
  await linkPrimaries(tx, kind, record, previous)
  return record
}

/** The record, locked until the transaction ends, so that two updates take turns. Throws `not_found`. */
export async function lockRecord(tx: Tenant, entity: EntityName, id: string): Promise<AgxRecord> {
  const kind = entities[entity]
  const row = await tx
    .trx(entity)
    .where({ organization_id: tx.organizationId, id })
    .whereNull('deleted_at')
    .forUpdate()
    .first(shownColumns(kind))
  if (!row) throw notFound(kind.object)
  return present(kind, row)
}

export function checkVersion(record: AgxRecord, ifVersion: number | undefined): void {
  if (ifVersion !== undefined && record.version !== ifVersion)
    throw new AppError('version_conflict', 'the record has changed since', {
      hint: `it is at version ${record.version}; read it again`,
    })
}

/** Throws `validation_error` naming each reference to a record that is not there. */
export async function checkReferences(
  tx: Tenant,
  kind: Kind,
  record: AgxRecord,
  only?: string[],
): Promise<void> {
  const issues = []
  for (const [name, field] of Object.entries(kind.fields)) {
    if (!field.to || record[name] == null || (only && !only.includes(name))) continue
    const target = entities[field.to]
    if (record[name] === record.id) {
      issues.push({ loc: ['body', name], msg: `a ${kind.object} cannot be its own`, type: 'self_reference' })
      continue
    }
    const found = await tx
      .trx(field.to)
      .where({ organization_id: tx.organizationId, id: record[name] as string })
      .whereNull('deleted_at')
      .first('id')
    if (!found)
      issues.push({
        loc: ['body', name],
        msg: `there is no ${target.object} with this id`,
        type: 'not_found',
      })
  }
  if (issues.length > 0) throw invalid(issues)
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

/** Custom fields as they are stored: a key that is null is not there. */
export const withoutNulls = (fields: unknown) =>
  Object.fromEntries(Object.entries((fields ?? {}) as object).filter(([, value]) => value !== null))
