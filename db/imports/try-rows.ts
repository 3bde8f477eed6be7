import { createHash } from 'node:crypto'
import type { CsvRow } from '../model/csv/rows.ts'
import { rowIssues } from '../model/imports/read-row.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { uniqueKey, uniqueKeys } from '../model/records/unique.ts'
import { upsertKey } from '../model/records/upsert-keys.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import { type ImportRow, PREVIEW_ROWS, type PreviewRow } from './imports.ts'
import type { Job, Written } from './write-rows.ts'

/**
 * A dry run: writes the rows and rolls back. Stores the keys of the records that would be created, so that a later row
 * that would conflict with them or update them is reported correctly.
 */
export async function tryRows(
  tx: Tenant,
  row: Pick<ImportRow, 'id' | 'rows_read' | 'preview'>,
  rows: CsvRow[],
  process: (tx: Tenant) => Promise<{ job: Job; written: Written }>,
): Promise<Written & { preview: PreviewRow[] }> {
  const { job, written, changes } = await rolledBack(tx, async (inner) => {
    const processed = await process(inner)
    return { ...processed, changes: await changesOf(inner, row, processed.written) }
  })
  const keysOf = await keysFor(tx, job)
  const made = written.made.map(({ row, record }) => ({ row, id: record.id, keys: keysOf(record) }))
  const seen = await ownersOf(
    tx,
    row.id,
    made.flatMap(({ keys }) => keys.map(({ hash }) => hash)),
  )
  const fresh: { key: string; record_id: string }[] = []
  for (const { row: of, id, keys } of made) {
    const found = keys.find(({ name }) => name === job.upsert_by)
    const owner = found && seen.get(found.hash)
    const taken = keys.find(({ hash }) => seen.has(hash) && seen.get(hash) !== owner)
    if (owner || taken) written.created--
    if (taken) {
      const msg = `an earlier row has this ${taken.name}`
      written.failures.push({
        row: of,
        issues: rowIssues(job.columns, [{ loc: taken.name.split('.'), msg }]),
      })
      continue
    }
    if (owner) {
      written.updated++
      written.found.push({ row: of, id: owner, changed: true })
    }
    fresh.push(...keys.map(({ hash }) => ({ key: hash, record_id: owner ?? id })))
  }
  await remember(tx, row.id, fresh)
  return { ...written, preview: [...(row.preview ?? []), ...previewOf(row, rows, written, changes)] }
}

/** The changes of the first records, by record. */
async function changesOf(
  tx: Tenant,
  { id, preview }: Pick<ImportRow, 'id' | 'preview'>,
  { made, found }: Written,
): Promise<Map<string, Record<string, unknown>>> {
  if ((preview?.length ?? 0) >= PREVIEW_ROWS) return new Map()
  const ids = [...made.map(({ record }) => record.id), ...found.map((one) => one.id)]
  const { rows } = await tx.trx.raw<{ rows: { record_id: string; changes: Record<string, unknown> }[] }>(
    `select record_id, changes from record_history
     where organization_id = ? and record_id = any(?) and job_id = ? order by version desc`,
    [tx.organizationId, ids, id],
  )
  return new Map(rows.map(({ record_id, changes }) => [record_id, changes]))
}

/** What the next rows do, until enough are shown. */
function previewOf(
  { preview, rows_read }: Pick<ImportRow, 'preview' | 'rows_read'>,
  rows: CsvRow[],
  { made, found, failures }: Written,
  changes: Map<string, Record<string, unknown>>,
): PreviewRow[] {
  const left = PREVIEW_ROWS - (preview?.length ?? 0)
  if (left <= 0) return []
  const failed = new Set(failures.map(({ row }) => row))
  const created = new Map(made.map(({ row, record }) => [row, record.id]))
  const known = new Map(found.map((one) => [one.row, one]))
  return rows
    .flatMap((row, i): PreviewRow[] => {
      const at = { row: rows_read + i + 1, line: row.line }
      const one = known.get(row)
      const id = created.get(row)
      const own = changes.get(id ?? one?.id ?? '') ?? {}
      if (failed.has(row)) return []
      // A row may change the record of an earlier row, which is not written: it has no id that means anything.
      if (one) {
        const action = one.changed ? 'updated' : 'skipped'
        return [{ ...at, action, record_id: id ? null : one.id, changes: one.changed ? own : {} }]
      }
      return id ? [{ ...at, action: 'created', record_id: null, changes: own }] : []
    })
    .slice(0, left)
}

/** Deletes the stored keys. Called after a dry run and before the next one. */
export async function forgetKeys(tx: Tenant, importId: string): Promise<void> {
  await tx.trx('import_keys').where({ organization_id: tx.organizationId, import_id: importId }).delete()
}

interface Key {
  name: string
  /** Hexadecimal hash of the key. */
  hash: string
}

/** The unique keys of a record, and its upsert key. */
async function keysFor(tx: Tenant, { entity, upsert_by }: Job): Promise<(record: AgxRecord) => Key[]> {
  const rules = await lockFieldRules(tx, entity)
  return (record) => {
    const keys = new Map(uniqueKeys(rules, record))
    const value = upsert_by === null ? undefined : upsertKey(upsert_by, record)
    if (value !== undefined && !keys.has(upsert_by!)) keys.set(upsert_by!, uniqueKey(value))
    return [...keys].map(([name, key]) => ({
      name,
      hash: createHash('sha256').update(`${name}\0${key}`).digest('hex'),
    }))
  }
}

/** The records of earlier rows with these keys, by key. */
async function ownersOf(tx: Tenant, importId: string, hashes: string[]): Promise<Map<string, string>> {
  const { rows } = await tx.trx.raw<{ rows: { key: string; record_id: string }[] }>(
    `select encode(key, 'hex') as key, record_id from import_keys
     where organization_id = ? and import_id = ?
       and key = any(select decode(hash, 'hex') from unnest(?::text[]) hash)`,
    [tx.organizationId, importId, hashes as never],
  )
  return new Map(rows.map(({ key, record_id }) => [key, record_id]))
}

async function remember(
  tx: Tenant,
  importId: string,
  fresh: { key: string; record_id: string }[],
): Promise<void> {
  await tx.trx.raw(
    `insert into import_keys (organization_id, import_id, key, record_id)
     select ?, ?, decode(key, 'hex'), record_id from jsonb_to_recordset(?) as fresh (key text, record_id uuid)
     on conflict do nothing`,
    [tx.organizationId, importId, JSON.stringify(fresh)],
  )
}

/** Runs `work` and rolls it back. */
async function rolledBack<T>(tx: Tenant, work: (tx: Tenant) => Promise<T>): Promise<T> {
  let result: { value: T } | undefined
  await savepoint(tx, async (inner) => {
    result = { value: await work(inner) }
    throw new Rollback()
  }).catch((error) => {
    if (!(error instanceof Rollback)) throw error
  })
  return result!.value
}

class Rollback extends Error {}
