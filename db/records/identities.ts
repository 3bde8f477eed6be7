import type { KindName } from '../model/records/kind.ts'
import { kindNames, kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { deleteRecord } from './delete.ts'
import { lockRecords } from './lock.ts'
import { lastReferenceOf } from './primaries.ts'

/** Records that belong to another one, with which they are unique (`identity` of a kind), such as consents of contacts. */

/** The kinds of which the `identity` begins with a reference to `kind`. */
export const ownedKinds = (kind: KindName) =>
  kindNames.flatMap((owned) => {
    const { identity, prevails = isNewer, fields } = kinds[owned]
    const [reference, ...others] = identity ?? []
    return reference !== undefined && fields[reference]!.to === kind
      ? [{ owned, reference, others, prevails }]
      : []
  })

const isNewer = (record: AgxRecord, other: AgxRecord) => String(record.created_at) > String(other.created_at)

/**
 * Before a merge: of two records that would have the same key, one of the loser and one of the winner, one stays: that
 * which `prevails`, as they are when they are locked. Called before the two are locked, as locks of referring records
 * come first (lock.ts); a record that is made meanwhile makes the merge a conflict.
 */
export async function settleIdentities(
  tx: Tenant,
  kind: KindName,
  loser: string,
  winner: string,
): Promise<void> {
  for (const { owned, reference, others, prevails } of ownedKinds(kind)) {
    const same = others.map((name) => `l.${name} = w.${name}`).join(' and ')
    const { rows } = await tx.trx.raw<{ rows: { of_loser: string; of_winner: string }[] }>(
      `select l.id as of_loser, w.id as of_winner
       from ${owned} l join ${owned} w on w.organization_id = l.organization_id and ${same}
       where l.organization_id = :of and l.${reference} = :loser and w.${reference} = :winner
         and l.deleted_at is null and w.deleted_at is null`,
      { of: tx.organizationId, loser, winner },
    )
    const ids = rows.flatMap((row) => [row.of_loser, row.of_winner]).sort()
    const found = await lockRecords(tx, owned, ids, 'for update')
    for (const { of_loser, of_winner } of rows) {
      const [ofLoser, ofWinner] = [found.get(of_loser), found.get(of_winner)]
      // One of them was deleted, or given another key, before it was locked.
      if (!ofLoser || !ofWinner) continue
      if (ofLoser[reference] !== loser || ofWinner[reference] !== winner) continue
      if (others.some((name) => ofLoser[name] !== ofWinner[name])) continue
      await deleteRecord(tx, owned, prevails(ofLoser, ofWinner) ? of_winner : of_loser)
    }
  }
}

/** The records that belong to `ids`, deleted ones too, and those that a deletion of their owner has cut off. */
export async function ownedBy(
  tx: Tenant,
  kind: KindName,
  ids: string[],
): Promise<{ kind: KindName; ids: string[] }[]> {
  const found: { kind: KindName; ids: string[] }[] = []
  for (const { owned, reference } of ownedKinds(kind)) {
    const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
      `select id from ${owned} where organization_id = :of and ${reference} = any(:ids)
       union
       select r.id from ${owned} r join associations a on a.organization_id = r.organization_id
         and (a.a_id = r.id and a.b_id = any(:ids) or a.b_id = r.id and a.a_id = any(:ids))
       where r.organization_id = :of and r.${reference} is null
         and ${lastReferenceOf('r', reference)} = any(cast(:ids as text[]))`,
      { of: tx.organizationId, ids } as never,
    )
    found.push({ kind: owned, ids: rows.map(({ id }) => id) })
  }
  return found
}
