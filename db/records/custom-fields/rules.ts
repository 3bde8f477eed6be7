import type { Tenant } from '../../postgres/tenancy.ts'
import type { Rules } from '../model/custom-fields/types.ts'
import type { EntityName } from '../model/kind.ts'

/**
 * Reads the rules and holds them until the transaction ends: nobody changes a definition between the check of a value
 * and its being there. One look-up by a primary key. `alone` is for who changes them.
 */
export async function lockFieldRules(tx: Tenant, entity: EntityName, alone = false): Promise<Rules> {
  const { rows } = await tx.trx.raw<{
    rows: { definitions: Rules['definitions'] | null; strict: boolean | null }[]
  }>('select definitions, is_strict as strict from custom_field_rules(?, ?, ?)', [
    tx.organizationId,
    entity,
    alone,
  ])
  const { definitions, strict } = rows[0]!
  return { definitions: definitions ?? {}, strict: strict ?? false }
}

/** The definitions of a kind by name, as they are at this moment: for queries. */
export async function readDefinitions(tx: Tenant, entity: EntityName): Promise<Rules['definitions']> {
  const row = await tx
    .trx('custom_field_definitions')
    .where({ organization_id: tx.organizationId, entity })
    .first<{ definitions: Rules['definitions'] } | undefined>('definitions')
  return row?.definitions ?? {}
}
