import type { Rules } from '../../model/records/custom-fields/types.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kinds } from '../../model/records/kinds/index.ts'
import type { Pipeline } from '../../model/records/pipelines/pipeline.ts'
import { firstPipeline } from '../../model/records/pipelines/presets.ts'
import type { Tenant } from '../../postgres/tenancy.ts'

/**
 * The rules, cached for each transaction or savepoint: this saves half of the statements of a loop that creates
 * records.
 */
const locked = new WeakMap<Tenant, Map<KindName, Promise<Rules>>>()

/**
 * Reads the rules of a kind's custom fields and pipelines, and locks them until the transaction ends: shared for writes
 * of values, `exclusive` for changes of definitions and pipelines. One statement, of look-ups by primary key.
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
  const of = [tx.organizationId, kind, exclusive]
  const { rows } = await tx.trx.raw<{ rows: LockedRules[] }>(
    kinds[kind].hasPipelines
      ? 'select definitions, is_strict as strict, pipelines from pipeline_rules(?, ?, ?)'
      : 'select definitions, is_strict as strict from custom_field_rules(?, ?, ?)',
    of,
  )
  const { definitions, strict, pipelines } = rows[0]!
  return {
    definitions: definitions ?? {},
    strict: strict ?? false,
    ...(pipelines !== undefined && { pipelines: pipelines ?? [firstPipeline(tx.organizationId)] }),
  }
}

interface LockedRules {
  definitions: Rules['definitions'] | null
  strict: boolean | null
  /** Null: those of a new organization. */
  pipelines?: Pipeline[] | null
}

/** The current definitions of a kind by name, without a lock: for queries. */
export async function readDefinitions(tx: Tenant, kind: KindName): Promise<Rules['definitions']> {
  const row = await tx
    .trx('custom_field_definitions')
    .where({ organization_id: tx.organizationId, entity: kind })
    .first<{ definitions: Rules['definitions'] } | undefined>('definitions')
  return row?.definitions ?? {}
}
