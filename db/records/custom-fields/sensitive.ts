import { recordChange } from '../../access/audit-log.ts'
import { conflict, invalid } from '../../model/errors.ts'
import { isMask, MASK_PATTERN, SensitiveValue } from '../../model/records/custom-fields/sensitive.ts'
import type { Rules } from '../../model/records/custom-fields/types.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kinds } from '../../model/records/kinds/index.ts'
import type { Write } from '../../model/records/prepare.ts'
import type { Sealer } from '../../model/sealer.ts'
import type { System, Tenant } from '../../postgres/tenancy.ts'
import { getRecord } from '../read.ts'

/**
 * The values of sensitive custom fields, sealed: a row for each mask that a record has, or has had, so that a revert
 * finds the value again. They are deleted with the record.
 */

interface Kept {
  record_id: string
  name: string
  mask: string
  /** Null in a row of a version before. */
  sealed: string | null
}

/** The owner that a value is sealed for. Its record may change, by a merge. */
export const ownerOfSensitive = (organizationId: string, mask: string) =>
  `${organizationId}.sensitive.${mask}`

function sealerOf({ sealer }: Tenant): Sealer {
  if (!sealer) throw new Error('sensitive values need a database that is `sealing`')
  return sealer
}

export const hasSensitive = (rules: Rules): boolean =>
  Object.values(rules.definitions).some(({ sensitive }) => sensitive)

/**
 * Stores the sensitive values of `writes`, and leaves masks in their records and changes. Throws `validation_error` for
 * the mask of another record.
 */
export async function keepSensitive(
  tx: Tenant,
  kind: KindName,
  rules: Rules,
  writes: Write[],
): Promise<void> {
  const kept: Kept[] = []
  const given: Pick<Kept, 'record_id' | 'name' | 'mask'>[] = []
  for (const { record, action, previous } of writes) {
    if (action !== 'created' && !(previous && 'custom_fields' in previous)) continue
    const before = (previous?.custom_fields ?? {}) as Record<string, unknown>
    // The same object as in the changes of the write.
    const fields = record.custom_fields as Record<string, unknown>
    for (const [name, value] of Object.entries(fields)) {
      if (value instanceof SensitiveValue) {
        const { mask } = value
        const owner = ownerOfSensitive(tx.organizationId, mask)
        const sealed = sealerOf(tx).seal(JSON.stringify(value.reveal()), owner)
        kept.push({ record_id: record.id, name, mask, sealed })
        fields[name] = mask
      } else if (rules.definitions[name]?.sensitive && isMask(value) && before[name] !== value)
        given.push({ record_id: record.id, name, mask: value })
    }
  }
  await requireOwnMasks(tx, given)
  if (kept.length === 0) return
  await tx.trx.raw(
    `insert into sensitive_values (organization_id, entity, record_id, name, mask, sealed)
     select ?, ?, record_id, name, mask, sealed
     from jsonb_to_recordset(?) as v (record_id uuid, name text, mask text, sealed text)`,
    [tx.organizationId, kind, JSON.stringify(kept)],
  )
}

async function requireOwnMasks(
  tx: Tenant,
  given: Pick<Kept, 'record_id' | 'name' | 'mask'>[],
): Promise<void> {
  if (given.length === 0) return
  const { rows } = await tx.trx.raw<{ rows: { name: string }[] }>(
    `select g.name from jsonb_to_recordset(?) as g (record_id uuid, name text, mask text)
     where not exists (select from sensitive_values v where v.organization_id = ? and v.record_id = g.record_id
       and v.name = g.name and v.mask = g.mask) limit 1`,
    [JSON.stringify(given), tx.organizationId],
  )
  const [foreign] = rows
  if (!foreign) return
  throw invalid([
    {
      loc: ['body', 'custom_fields', foreign.name],
      msg: 'is the mask of a sensitive value, not the value',
      type: 'invalid_value',
      hint: 'send the value, or leave the field out to keep it',
    },
  ])
}

/** The sensitive values of a record, by field. The audit log notes who saw them. Throws `not_found`. */
export async function revealSensitive(
  tx: Tenant,
  kind: KindName,
  id: string,
): Promise<Record<string, unknown>> {
  const { custom_fields } = await getRecord(tx, kind, id)
  const fields = Object.entries(custom_fields as object).filter(([, value]) => isMask(value))
  if (fields.length === 0) return {}
  const rows = await tx
    .trx('sensitive_values')
    .where({ organization_id: tx.organizationId, record_id: id })
    .whereIn(
      'mask',
      fields.map(([, mask]) => mask),
    )
    .select<(Kept & { value: unknown })[]>('name', 'mask', 'sealed', 'value')
  const values = fields.flatMap(([name, mask]) => {
    const row = rows.find((one) => one.name === name && one.mask === mask)
    return row ? [[name, opened(tx, row)]] : []
  })
  const found: Record<string, unknown> = Object.fromEntries(values)
  if (values.length > 0)
    await recordChange(tx, 'record.revealed', {
      id,
      name: kinds[kind].object,
      details: { entity: kind, fields: Object.keys(found) },
    })
  return found
}

/** A row that a version before the sealing has written has `value`, until `sealPlain`. */
function opened(tx: Tenant, { sealed, mask, value }: Kept & { value: unknown }): unknown {
  if (sealed === null) return value
  return JSON.parse(sealerOf(tx).open(sealed, ownerOfSensitive(tx.organizationId, mask)))
}

/** The values of a record that is merged into another. */
export const moveSensitive = (tx: Tenant, from: string, to: string) =>
  tx
    .trx('sensitive_values')
    .where({ organization_id: tx.organizationId, record_id: from })
    .update({ record_id: to })

/** Deletes all values of a field. */
export const forgetSensitive = (tx: Tenant, entity: KindName, name: string) =>
  tx.trx('sensitive_values').where({ organization_id: tx.organizationId, entity, name }).delete()

/** Throws `conflict` if records, deleted ones too, have values under the name: their copies would stay readable. */
export async function requireNoValues(tx: Tenant, kind: KindName, name: string): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select id from ${kind} where organization_id = ? and jsonb_exists(custom_fields, ?)
       and custom_fields ->> ? !~ ? limit 1`,
    [tx.organizationId, name, name, MASK_PATTERN],
  )
  if (rows.length > 0)
    throw conflict(
      `${kind} already have values of ${name}, and their copies in history, events and runs would stay`,
      {
        param: 'sensitive',
        hint: 'define the sensitive field under another name',
        candidates: rows.map(({ id }) => ({ object: kinds[kind].object, id })),
      },
    )
}

const PLAIN_BATCH = 500

/** Seals values that a version without sealing has written. Can be interrupted and repeated. @returns their number. */
export async function sealPlain(system: System, sealer: Sealer): Promise<number> {
  for (let sealed = 0; ; ) {
    const rows = await system('sensitive_values')
      .whereNull('sealed')
      .limit(PLAIN_BATCH)
      .select<{ organization_id: string; mask: string; value: unknown }[]>('organization_id', 'mask', 'value')
    if (rows.length === 0) return sealed
    const fresh = rows.map(({ organization_id, mask, value }) => ({
      organization_id,
      mask,
      sealed: sealer.seal(JSON.stringify(value), ownerOfSensitive(organization_id, mask)),
    }))
    await system.raw(
      `update sensitive_values v set sealed = f.sealed, value = null
       from jsonb_to_recordset(?) as f (organization_id uuid, mask text, sealed text)
       where v.organization_id = f.organization_id and v.mask = f.mask and v.sealed is null`,
      [JSON.stringify(fresh)],
    )
    sealed += rows.length
  }
}
