import type { Tenant } from '../tenancy.ts'
import type { EntityName, Kind } from './kind.ts'
import { referencesOf } from './references.ts'
import type { AgxRecord } from './schemas.ts'

/** The rows behind associations: one for a pair, which both ends find through an index. */

/** An end of a link. */
export interface End {
  entity: EntityName
  id: string
}

/** Makes the links agree with the reference fields that were just written; `previous` holds those that changed. */
export async function linkPrimaries(
  tx: Tenant,
  kind: Kind,
  record: AgxRecord,
  previous: Record<string, unknown>,
  keepOld = false,
): Promise<void> {
  const holder = { entity: kind.entity, id: record.id }
  for (const [name, field] of referencesOf(kind)) {
    if (record.version > 1 && !(name in previous)) continue
    const old = previous[name]
    const next = record[name]
    if (typeof old === 'string' && !keepOld)
      await tx
        .trx('associations')
        .where(pairOf(tx, holder, { entity: field.to, id: old }))
        .delete()
    if (typeof next === 'string') await upsertLink(tx, holder, { entity: field.to, id: next }, {})
  }
}

/** Makes the link, or replaces its properties where some are given. */
export async function upsertLink(tx: Tenant, from: End, to: End, given: Record<string, unknown>) {
  const { label, ...properties } = given
  const replaces = Object.keys(given).length > 0
  const [row] = await tx
    .trx('associations')
    .insert({
      ...pairOf(tx, from, to),
      label: typeof label === 'string' ? label : null,
      properties: JSON.stringify(typeof label === 'string' ? properties : given),
    })
    .onConflict(['organization_id', 'a_id', 'b_entity', 'b_id'])
    // Without properties the row is only touched, so that it comes back.
    .merge(replaces ? ['label', 'properties'] : ['a_id'])
    .returning<{ label: string | null; properties: Record<string, unknown>; created_at: Date }[]>([
      'label',
      'properties',
      'created_at',
    ])
  return row!
}

/** The one row that stands for a pair, whichever end asks. Ids are in lower case. */
export function pairOf(tx: Tenant, one: End, two: End) {
  const [a, b] = `${one.entity} ${one.id}` < `${two.entity} ${two.id}` ? [one, two] : [two, one]
  return {
    organization_id: tx.organizationId,
    a_entity: a.entity,
    a_id: a.id,
    b_entity: b.entity,
    b_id: b.id,
  }
}

/** Whether the record is there and not deleted. */
export async function exists(tx: Tenant, end: End): Promise<boolean> {
  const row = await tx
    .trx(end.entity)
    .where({ organization_id: tx.organizationId, id: end.id })
    .whereNull('deleted_at')
    .first('id')
  return row !== undefined
}
