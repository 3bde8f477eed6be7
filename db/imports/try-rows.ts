import { createHash } from 'node:crypto'
import type { CsvRow } from '../model/csv/rows.ts'
import { rowIssues } from '../model/imports/read-row.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { uniqueKey, uniqueKeys } from '../model/records/unique.ts'
import { upsertKey } from '../model/records/upsert-keys.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import type { Job, Written, writeRows } from './write-rows.ts'

/**
 * A dry run: writes the rows and rolls back. Stores the keys of the records that would be created, so that a later row
 * that would conflict with them or update them is reported correctly.
 */
export async function tryRows(
  tx: Tenant,
  job: Job & { id: string },
  rows: CsvRow[],
  write: typeof writeRows,
): Promise<Written> {
  const written = await rolledBack(tx, (inner) => write(inner, job, rows))
  const keysOf = await keysFor(tx, job)
  const made = written.made.map(({ row, record }) => ({ row, id: record.id, keys: keysOf(record) }))
  const seen = await ownersOf(
    tx,
    job.id,
    made.flatMap(({ keys }) => keys.map(({ hash }) => hash)),
  )
  const fresh: { key: string; record_id: string }[] = []
  for (const { row, id, keys } of made) {
    const found = keys.find(({ name }) => name === job.upsert_by)
    const owner = found && seen.get(found.hash)
    const taken = keys.find(({ hash }) => seen.has(hash) && seen.get(hash) !== owner)
    if (owner || taken) written.created--
    if (taken) {
      const msg = `an earlier row has this ${taken.name}`
      written.failures.push({ row, issues: rowIssues(job.columns, [{ loc: taken.name.split('.'), msg }]) })
      continue
    }
    if (owner) written.updated++
    fresh.push(...keys.map(({ hash }) => ({ key: hash, record_id: owner ?? id })))
  }
  await remember(tx, job.id, fresh)
  return written
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
