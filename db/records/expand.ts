import { membersByIds } from '../access/members.ts'
import { type Expansion, expansionsOf, MAX_ASSOCIATED } from '../model/records/expansions.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { readRecords } from './read.ts'

/** What is shown beside a record, by the name in `expand`. */
export type Expanded = Record<string, unknown>

/**
 * The records with what `names` show beside them, in `expanded`: at most two statements for each name, whatever the
 * number of records. A reference without a live record, and a user who is no member, is null.
 */
export async function withExpanded<T extends AgxRecord>(
  tx: Tenant,
  kind: KindName,
  records: T[],
  names: string[] | undefined,
): Promise<(T & { expanded?: Expanded })[]> {
  if (!names) return records
  const known = expansionsOf(kinds[kind])
  const shown = await Promise.all(
    names.map(async (name) => [name, await read(tx, kind, known.get(name)!, records)] as const),
  )
  return records.map((record) => ({
    ...record,
    expanded: Object.fromEntries(shown.map(([name, of]) => [name, of(record)])),
  }))
}

/** Reads what an expansion shows. @returns a function that gives it for each record. */
async function read(
  tx: Tenant,
  kind: KindName,
  expansion: Expansion,
  records: AgxRecord[],
): Promise<(record: AgxRecord) => unknown> {
  switch (expansion.is) {
    case 'record': {
      const found = await readRecords(tx, expansion.of, namedBy(records, expansion.field))
      return (record) => found.get(String(record[expansion.field])) ?? null
    }
    case 'user': {
      const members = await membersByIds(tx, namedBy(records, expansion.field))
      const found = new Map(members.map(({ id, name, role }) => [id, { object: 'user', id, name, role }]))
      return (record) => found.get(String(record[expansion.field])) ?? null
    }
    case 'associated': {
      const linked = await associatedIds(tx, kind, records, expansion.of)
      const found = await readRecords(tx, expansion.of, [...new Set([...linked.values()].flat())])
      return ({ id }) => {
        const ids = linked.get(id) ?? []
        const data = ids.slice(0, MAX_ASSOCIATED).flatMap((other) => found.get(other) ?? [])
        return { data, has_more: ids.length > MAX_ASSOCIATED }
      }
    }
  }
}

const namedBy = (records: AgxRecord[], field: string): string[] => [
  ...new Set(records.flatMap((record) => (typeof record[field] === 'string' ? record[field] : []))),
]

/** The ids of the newest associated records of a kind, one more than are shown, by the id of each record. */
async function associatedIds(
  tx: Tenant,
  kind: KindName,
  records: AgxRecord[],
  of: KindName,
): Promise<Map<string, string[]>> {
  const { rows } = await tx.trx.raw<{ rows: { id: string; others: string[] }[] }>(
    `select r.id, array(
       select other from (
         select b_id as other from associations
           where organization_id = :organization and a_id = r.id and a_entity = :kind and b_entity = :of
         union all
         select a_id from associations
           where organization_id = :organization and b_id = r.id and b_entity = :kind and a_entity = :of
       ) linked order by other desc limit ${MAX_ASSOCIATED + 1}
     ) as others from unnest(:ids::uuid[]) as r (id)`,
    { organization: tx.organizationId, ids: records.map(({ id }) => id), kind, of } as never,
  )
  return new Map(rows.map(({ id, others }) => [id, others]))
}
