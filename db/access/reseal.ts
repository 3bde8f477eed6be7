import { ownerOfEmbedding } from '../knowledge/embeddings.ts'
import type { System } from '../postgres/tenancy.ts'
import { headerOf, open, type SecretsKey, seal } from '../process/seal.ts'
import { ownerOfRequest } from '../process/sealed-request.ts'
import { ownerOfSensitive } from '../records/custom-fields/sensitive.ts'
import { ownerOfFile } from '../stored-files/store.ts'
import { ownerOfMail } from './account-mails.ts'
import { ANSWER_KEY, ownerOfAnswer } from './idempotency.ts'
import { ownerOfSecret } from './secrets.ts'

/** A column or JSON value that is sealed. */
export interface SealedPlace {
  table: string
  column: string
  /** The column that identifies a row within its organization. */
  key: 'id' | 'name' | 'mask' | typeof ANSWER_KEY
  /** SQL: the sealed value inside of the column. Default: the column itself. */
  value?: string
  /** SQL: the column with the sealed value replaced by `fresh`. Default: `fresh`. */
  changed?: string
  /** SQL condition of the rows that can have a sealed value, to use an index. */
  where?: string
  /** The owner that the value is sealed for. */
  ownerOf?: (organizationId: string, key: string) => string
}

/** Every place in the database whose values SECRETS_KEY seals. */
export const SEALED_PLACES: readonly SealedPlace[] = [
  { table: 'secrets', column: 'sealed', key: 'name', ownerOf: ownerOfSecret },
  { table: 'incoming_webhooks', column: 'secret_sealed', key: 'id' },
  { table: 'incoming_webhooks', column: 'previous_secret_sealed', key: 'id' },
  { table: 'outgoing_webhooks', column: 'secret_sealed', key: 'id' },
  { table: 'outgoing_webhooks', column: 'previous_secret_sealed', key: 'id' },
  { table: 'outgoing_webhooks', column: 'headers_sealed', key: 'id' },
  { table: 'incoming_webhooks', column: 'source_headers_sealed', key: 'id' },
  // Responses of the last day.
  {
    table: 'idempotency_keys',
    column: 'body_sealed',
    key: ANSWER_KEY,
    where: 'body_sealed is not null',
    ownerOf: ownerOfAnswer,
  },
  // Requests whose log rows have masks.
  {
    table: 'incoming_logs',
    column: 'payload_sealed',
    key: 'id',
    where: 'payload_sealed is not null',
    ownerOf: ownerOfRequest,
  },
  { table: 'knowledge_embeddings', column: 'api_key_sealed', key: 'id', ownerOf: ownerOfEmbedding },
  { table: 'account_mails', column: 'sealed', key: 'id', ownerOf: ownerOfMail },
  // The keys of contents, which stay as they are.
  { table: 'files', column: 'key_sealed', key: 'id', ownerOf: ownerOfFile },
  { table: 'sensitive_values', column: 'sealed', key: 'mask', ownerOf: ownerOfSensitive },
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

/** The result for one place. */
export interface Resealed {
  place: SealedPlace
  resealed: number
  /** Rows whose value no given key opens. */
  unopened: { organization_id: string; key: string; reason: string }[]
}

export const BATCH = 100

interface Row {
  organization_id: string
  key: string
  sealed: string
}

/**
 * Reseals with the first of `keys` the values that another of them sealed, one statement per batch. A value that the
 * service replaces meanwhile is left unchanged. Resealed values are not read again, so an interrupted pass can be
 * repeated. `stopped` ends the pass after the current batch.
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

/** The next rows, ordered by key, whose value another key sealed. */
async function readBatch(
  system: System,
  place: SealedPlace,
  header: string,
  after: Row | undefined,
  limit: number,
): Promise<Row[]> {
  const { table, column, key, value = column, where = 'true' } = place
  const { rows } = await system.raw<{ rows: Row[] }>(
    `select organization_id, (${key})::text as key, ${value} as sealed from ${table}
     where ${where} and ${value} is not null and not starts_with(${value}, ?)
       ${after ? `and (organization_id, ${key}) > (?, ?)` : ''}
     order by organization_id, ${key} limit ?`,
    [`${header}.`, ...(after ? [after.organization_id, after.key] : []), limit],
  )
  return rows
}

/** Replaces the values that have not changed since they were read. @returns their number. */
async function writeBatch(
  system: System,
  { table, column, key, value = column, changed = 'fresh' }: SealedPlace,
  rows: (Row & { fresh: string })[],
): Promise<number> {
  if (rows.length === 0) return 0
  const { rowCount } = await system.raw<{ rowCount: number }>(
    `update ${table} t set ${column} = ${changed}
     from jsonb_to_recordset(?::jsonb) as given (of_organization uuid, row_key text, was text, fresh text)
     where organization_id = of_organization and ${key} = ${key === 'id' ? 'row_key::uuid' : 'row_key'}
       and ${value} = was`,
    [
      JSON.stringify(
        rows.map(({ organization_id, key, sealed, fresh }) => ({
          of_organization: organization_id,
          row_key: key,
          was: sealed,
          fresh,
        })),
      ),
    ],
  )
  return rowCount
}
