import type { Tenant } from '../tenancy.ts'
import type { EntityName } from './kind.ts'
import { entities, entityNames } from './kinds/index.ts'
import type { End } from './links.ts'
import { updateRecord } from './update.ts'

/** Keeps reference fields (`company_id`: the primary link) in agreement with associations. */

/** Linking fills a reference field that is null, at either end. */
export async function fillPrimaries(tx: Tenant, from: End, to: End): Promise<void> {
  await changePrimaries(
    tx,
    from,
    to,
    (current) => current === null,
    (other) => other.id,
  )
}

/** Unlinking clears a reference field that names the other end. */
export async function clearPrimaries(tx: Tenant, from: End, to: End): Promise<void> {
  await changePrimaries(
    tx,
    from,
    to,
    (current, other) => current === other.id,
    () => null,
  )
}

/** Clears the reference fields that point to a record that is about to be deleted. Its other links are just not seen. */
export async function clearReferencesTo(tx: Tenant, entity: EntityName, id: string): Promise<void> {
  for (const other of entityNames)
    for (const [field, { to }] of Object.entries(entities[other].fields)) {
      if (to !== entity) continue
      const rows = await tx
        .trx(other)
        .where({ organization_id: tx.organizationId, [field]: id })
        .whereNull('deleted_at')
        .select<{ id: string }[]>('id')
      for (const row of rows) await updateRecord(tx, other, row.id, { [field]: null })
    }
}

async function changePrimaries(
  tx: Tenant,
  from: End,
  to: End,
  applies: (current: unknown, other: End) => boolean,
  value: (other: End) => string | null,
): Promise<void> {
  // Between two of the same kind the reference is the first's: what links A to B is A's parent.
  const ends =
    from.entity === to.entity
      ? ([[from, to]] as const)
      : ([
          [from, to],
          [to, from],
        ] as const)
  for (const [holder, other] of ends)
    for (const field of primariesOf(holder, other))
      if (applies(await currentValue(tx, holder, field), other))
        await updateRecord(tx, holder.entity, holder.id, { [field]: value(other) })
}

/** The reference fields of `holder` that point to the kind at the other end. */
const primariesOf = (holder: End, other: End): string[] =>
  Object.entries(entities[holder.entity].fields)
    .filter(([, field]) => field.to === other.entity)
    .map(([name]) => name)

async function currentValue(tx: Tenant, end: End, field: string): Promise<unknown> {
  const row = await tx
    .trx(end.entity)
    .where({ organization_id: tx.organizationId, id: end.id })
    .forUpdate()
    .first<Record<string, unknown>>(field)
  return row?.[field]
}
