import { AppError, notFound } from '../model/errors.ts'
import type { Kind, KindName } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** Records that were merged into another: their ids point to the winner permanently. */

export async function mergedInto(tx: Tenant, kind: KindName, id: string): Promise<string | undefined> {
  const row = await tx
    .trx('merged_records')
    .where({ organization_id: tx.organizationId, id, entity: kind })
    .first<{ merged_into: string } | undefined>('merged_into')
  return row?.merged_into
}

/** The `not_found` error of a record; of a merged record it contains the id of the winner. */
export async function recordNotFound(tx: Tenant, kind: Kind, id: string): Promise<AppError> {
  const winner = await mergedInto(tx, kind.entity, id)
  if (winner === undefined) return notFound(kind.object)
  return new AppError('not_found', `${kind.object} not found: it was merged into another`, {
    merged_into: winner,
  })
}

/** Points `id`, and the ids of all records that were merged into it, to the winner. */
export async function pointTo(tx: Tenant, kind: Kind, id: string, winner: string): Promise<void> {
  const merged = () => tx.trx('merged_records')
  await merged()
    .where({ organization_id: tx.organizationId, merged_into: id })
    .update({ merged_into: winner })
  await merged().insert({
    organization_id: tx.organizationId,
    id,
    entity: kind.entity,
    merged_into: winner,
  })
}
