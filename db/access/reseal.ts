import type { System } from '../postgres/tenancy.ts'
import { headerOf, open, type SecretsKey, seal } from '../process/seal.ts'
import { ownerOfMail } from './account-mails.ts'
import { ownerOfSecret } from './secrets.ts'

/** Where a sealed value is. */
export interface SealedPlace {
  table: string
  column: string
  /** With the organization, identifies a row. */
  key: 'id' | 'name'
  /** The value, where the column holds more than it. */
  value?: string
  /** Sets the value to `fresh`. Default: the column. */
  changed?: string
  /** The rows that can have one; for its index. */
  where?: string
  /** What the value is bound to, as it was sealed. */
  ownerOf?: (organizationId: string, key: string) => string
}

/** Every place of the database with values that SECRETS_KEY seals. */
export const SEALED_PLACES: readonly SealedPlace[] = [
  { table: 'secrets', column: 'sealed', key: 'name', ownerOf: ownerOfSecret },
  { table: 'incoming_webhooks', column: 'secret_sealed', key: 'id' },
  { table: 'incoming_webhooks', column: 'previous_secret_sealed', key: 'id' },
  { table: 'outgoing_webhooks', column: 'secret_sealed', key: 'id' },
  { table: 'outgoing_webhooks', column: 'previous_secret_sealed', key: 'id' },
  { table: 'outgoing_webhooks', column: 'headers_sealed', key: 'id' },
  { table: 'account_mails', column: 'sealed', key: 'id', ownerOf: ownerOfMail },
  // Node tests that have not ended.
  {
    table: 'runs',
    column: 'node',
    key: 'id',
    where: "kind = 'node_test'",
    value: "node ->> 'sealed'",
    changed: "jsonb_set(node, '{sealed}', to_jsonb(fresh))",
  },
]

/** The values of one place. */
export interface Resealed {
  place: SealedPlace
  resealed: number
  /** Values that no given key opens, and their rows. */
  unopened: { organization_id: string; key: string; reason: string }[]
}

export const BATCH = 100

interface Row {
  organization_id: string
  key: string
  sealed: string
}

/**
 * Seals with the first of `keys` what another of them sealed, in batches of one statement each. A value that the service
 * replaces meanwhile is left as it is. Values that are done are not read again, so that a pass that was interrupted can
 * be repeated. `stopped` ends it after a batch.
 */
export async function reseal(
  system: System,
  keys: SecretsKey,
  { batch = BATCH, stopped = () => false }: { batch?: number; stopped?: () => boolean } = {},
): Promise<Resealed[]> {
  const results: Resealed[] = []
  for (const place of SEALED_PLACES) {
    const result: Resealed = { place, resealed: 0, unopened: [] }
    results.push(result)
    let after: Row | undefined
    while (!stopped()) {
      const rows = await readBatch(system, place, headerOf(keys), after, batch)
      if (rows.length === 0) break
      after = rows.at(-1)
      const fresh = rows.flatMap((row) => {
        const owner = place.ownerOf?.(row.organization_id, row.key) ?? ''
        try {
          return [{ ...row, fresh: seal(keys, open(keys, row.sealed, owner), owner) }]
        } catch (error) {
          const { organization_id, key } = row
          result.unopened.push({ organization_id, key, reason: (error as Error).message })
          return []
        }
      })
      result.resealed += await writeBatch(system, place, fresh)
    }
  }
  return results
}

/** The next rows whose value another key sealed, by their key. */
async function readBatch(
  system: System,
  place: SealedPlace,
  header: string,
  after: Row | undefined,
  limit: number,
): Promise<Row[]> {
  const { table, column, key, value = column, where = 'true' } = place
  const { rows } = await system.raw<{ rows: Row[] }>(
    `select organization_id, ${key}::text as key, ${value} as sealed from ${table}
     where ${where} and ${value} is not null and not starts_with(${value}, ?)
       ${after ? `and (organization_id, ${key}) > (?, ?)` : ''}
     order by organization_id, ${key} limit ?`,
    [`${header}.`, ...(after ? [after.organization_id, after.key] : []), limit],
  )
  return rows
}

/** Writes the values that are still those that were read. @returns how many. */
async function writeBatch(
  system: System,
  { table, column, key, value = column, changed = 'fresh' }: SealedPlace,
  rows: (Row & { fresh: string })[],
): Promise<number> {
  if (rows.length === 0) return 0
  const { rowCount } = await system.raw<{ rowCount: number }>(
    `update ${table} t set ${column} = ${changed}
     from jsonb_to_recordset(?::jsonb) as given (organization_id uuid, key text, sealed text, fresh text)
     where t.organization_id = given.organization_id and t.${key} = ${key === 'id' ? 'given.key::uuid' : 'given.key'} and t.${value} = given.sealed`,
    [JSON.stringify(rows)],
  )
  return rowCount
}
