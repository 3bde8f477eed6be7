import type { Rules } from '../../model/records/custom-fields/types.ts'
import type { KindName } from '../../model/records/kind.ts'
import type { Tenant } from '../../postgres/tenancy.ts'

/**
 * The rules, cached for each transaction or savepoint: this saves half of the statements of a loop that creates
 * records.
 */
const locked = new WeakMap<Tenant, Map<KindName, Promise<Rules>>>()

/**
 * Reads the rules of a kind's custom fields, and locks them until the transaction ends: shared for writes of values,
 * `exclusive` for changes of definitions. One lookup by primary key.
 */
export async function lockFieldRules(tx: Tenant, kind: KindName, exclusive = false): Promise<Rules> {
  const cache = locked.get(tx) ?? new Map<KindName, Promise<Rules>>()
  locked.set(tx, cache)
  // An exclusive lock is for a change of the rules, so they are not cached.
  if (exclusive) {
    cache.delete(kind)
    return readAndLock(tx, kind, true)
  }
  const rules = cache.get(kind) ?? readAndLock(tx, kind, false)
  cache.set(kind, rules)
  return rules
}

async function readAndLock(tx: Tenant, kind: KindName, exclusive: boolean): Promise<Rules> {
  const { rows } = await tx.trx.raw<{
    rows: { definitions: Rules['definitions'] | null; strict: boolean | null }[]
  }>('select definitions, is_strict as strict from custom_field_rules(?, ?, ?)', [
    tx.organizationId,
    kind,
    exclusive,
  ])
  const { definitions, strict } = rows[0]!
  return { definitions: definitions ?? {}, strict: strict ?? false }
}

/** The current definitions of a kind by name, without a lock: for queries. */
export async function readDefinitions(tx: Tenant, kind: KindName): Promise<Rules['definitions']> {
  const row = await tx
    .trx('custom_field_definitions')
    .where({ organization_id: tx.organizationId, entity: kind })
    .first<{ definitions: Rules['definitions'] } | undefined>('definitions')
  return row?.definitions ?? {}
}
