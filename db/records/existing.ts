import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import { lookupKey } from '../model/records/upsert-keys.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** A value of a new record that other records have. */
export interface ExistingValue {
  code: `${string}_exists`
  field: string
  message: string
  /** The oldest records with the value, at most `MAX_SHOWN`. */
  record_ids: string[]
}

/** Records that a warning names. */
const MAX_SHOWN = 5

/** By kind, the fields by which people recognize a record, each with the columns that can hold its value. */
const COMPARED: Partial<Record<KindName, Record<string, string[]>>> = {
  contacts: {
    email: ['email_lower'],
    phone: ['phone', 'mobile_phone'],
    mobile_phone: ['phone', 'mobile_phone'],
  },
  companies: { domain: ['domain'], phone: ['phone'] },
}

/**
 * Warnings for the email addresses, domains and phones of a new record that live records of its kind have, their
 * alternate keys included. They are no errors: people share an address, and companies a switchboard. One statement,
 * none without such a value.
 */
export async function existingValues(
  tx: Tenant,
  kind: KindName,
  input: RecordInput,
): Promise<ExistingValue[]> {
  const given = Object.entries(COMPARED[kind] ?? {}).flatMap(([field, columns]) =>
    typeof input[field] === 'string' ? [{ field, columns, value: lookupKey(field, input[field]) }] : [],
  )
  if (given.length === 0) return []
  const parts = given.flatMap(({ field, columns, value }) => [
    ...columns.map((column) => ({
      sql: `(select ?::text as field, id, created_at from ${kind}
             where organization_id = ? and ${column} = ? and deleted_at is null
             order by created_at, id limit ${MAX_SHOWN})`,
      bindings: [field, tx.organizationId, value],
    })),
    {
      sql: `(select ?::text, r.id, r.created_at from alternate_keys a
                   join ${kind} r on r.organization_id = a.organization_id and r.id = a.record_id
                   where a.organization_id = ? and a.entity = ? and a.field = ? and a.key = ? and r.deleted_at is null
                   limit ${MAX_SHOWN})`,
      bindings: [field, tx.organizationId, kind, field === 'mobile_phone' ? 'phone' : field, value],
    },
  ])
  const { rows } = await tx.trx.raw<{ rows: { field: string; id: string }[] }>(
    `select field, id from (${parts.map(({ sql }) => sql).join(' union all ')}) found order by created_at, id`,
    parts.flatMap(({ bindings }) => bindings) as never,
  )
  return given.flatMap(({ field }): ExistingValue[] => {
    const ids = [...new Set(rows.flatMap((row) => (row.field === field ? row.id : [])))].slice(0, MAX_SHOWN)
    if (ids.length === 0) return []
    const others = ids.length > 1 ? `other ${kind} have` : `another ${kinds[kind].object} has`
    return [{ code: `${field}_exists`, field, message: `${others} this ${field}`, record_ids: ids }]
  })
}
