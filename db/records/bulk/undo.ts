import { isDeepStrictEqual } from 'node:util'
import { type AppError, conflict } from '../../model/errors.ts'
import { type KindName, referencesOf } from '../../model/records/kind.ts'
import { kindNames, kinds } from '../../model/records/kinds/index.ts'
import type { Write } from '../../model/records/prepare.ts'
import type { AgxRecord } from '../../model/records/schemas.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { deleteRecord } from '../delete.ts'
import { referringFirst } from '../lock.ts'
import { restoreRecord } from '../restore.ts'
import { type PastValues, revertSet } from '../revert.ts'
import { alone, type BulkItem, type BulkOutcome, type Listed } from './items.ts'

/**
 * Undoes what an import or a bulk job has changed, which the histories of the records name. In this order: what it
 * deleted is restored, what it changed gets its former values, and what it created is deleted, referring kinds before
 * those that they refer to. A record that was changed since is refused, and stays as it is.
 */

const RESTORE = 0
const REVERT = 1
const DELETE = 2

/** The records that a job changed, by id. */
export async function listChanged(
  tx: Tenant,
  jobId: string,
  after: string | null,
  limit: number,
): Promise<Listed> {
  const { rows } = await tx.trx.raw<{
    rows: { record_id: string; object: string; made: boolean; gone: boolean }[]
  }>(
    `select record_id, object, bool_or(action in ('created', 'restored')) as made, bool_or(action = 'deleted') as gone
     from record_history where organization_id = ? and job_id = ? and record_id > ?
     group by record_id, object order by record_id limit ?`,
    [tx.organizationId, jobId, after ?? '00000000-0000-0000-0000-000000000000', limit],
  )
  const items = rows.map(({ record_id, object, made, gone }): BulkItem => {
    const entity = kindNames.find((kind) => kinds[kind].object === object)!
    const step = made ? DELETE + referringFirst.indexOf(entity) : gone ? RESTORE : REVERT
    return { entity, record_id, step }
  })
  return { items, cursor: rows.length === limit ? rows.at(-1)!.record_id : null }
}

/** @returns undefined for each record that is as before the job now, else why it is not. */
export async function undoRecords(tx: Tenant, jobId: string, items: BulkItem[]): Promise<BulkOutcome[]> {
  const changes = await changesOf(
    tx,
    jobId,
    items.map(({ record_id }) => record_id),
  )
  const outcomes: BulkOutcome[] = []
  for (const { entity, record_id } of items) {
    const made = changes.get(record_id)
    outcomes.push(made && (await alone(tx, (one) => undoRecord(one, jobId, entity, record_id, made))))
  }
  return outcomes
}

/** A change of the job, as in the history. */
interface Entry {
  version: number
  action: Write['action']
  changes: Record<string, { from: unknown; to: unknown }>
  at: Date
}

async function changesOf(tx: Tenant, jobId: string, ids: string[]): Promise<Map<string, Entry[]>> {
  const { rows } = await tx.trx.raw<{ rows: (Entry & { record_id: string })[] }>(
    `select record_id, version, action, changes, at from record_history
     where organization_id = ? and job_id = ? and record_id = any(?::uuid[]) order by record_id, version`,
    [tx.organizationId, jobId, ids] as never,
  )
  const found = new Map<string, Entry[]>()
  for (const { record_id, ...entry } of rows) found.set(record_id, [...(found.get(record_id) ?? []), entry])
  return found
}

/** Throws the errors of the writes; `conflict` for a record that was changed since. */
async function undoRecord(tx: Tenant, jobId: string, entity: KindName, id: string, entries: Entry[]) {
  const last = entries.at(-1)!
  const existedBefore = !['created', 'restored'].includes(entries[0]!.action)
  const existsAfter = last.action !== 'deleted'
  if (existedBefore && existsAfter) return revert(tx, entity, id, entries)
  if (existedBefore) return restore(tx, entity, id)
  if (!existsAfter) return
  const current = await tx
    .trx(entity)
    .where({ organization_id: tx.organizationId, id })
    .whereNull('deleted_at')
    .first<{ version: number } | undefined>('version')
  // Deleted since, as the undo wants it.
  if (!current) return
  if (current.version !== last.version) throw changedSince('the record was changed since')
  await requireUnused(tx, jobId, entity, id, last.at)
  return deleteRecord(tx, entity, id, { ifVersion: [last.version] })
}

/** Restores the record, unless somebody has done so. */
async function restore(tx: Tenant, entity: KindName, id: string): Promise<void> {
  const live = await tx
    .trx(entity)
    .where({ organization_id: tx.organizationId, id })
    .whereNull('deleted_at')
    .first('id')
  if (!live) await restoreRecord(tx, entity, id)
}

const changedSince = (message: string): AppError => conflict(message)

/** Gives the fields that the job changed their former values. */
async function revert(tx: Tenant, entity: KindName, id: string, entries: Entry[]): Promise<void> {
  const past = (current: AgxRecord): PastValues => {
    const values: PastValues = {}
    const conflicts: string[] = []
    for (const [name, { from, to }] of netChanges(entries)) {
      const [was, wrote, is] = [from, to, fieldOf(current, name)]
      if (isDeepStrictEqual(is ?? null, was ?? null)) continue
      if (!isDeepStrictEqual(is ?? null, wrote ?? null)) conflicts.push(name)
      else if (name.startsWith(CUSTOM))
        values.custom_fields = {
          ...(values.custom_fields as object | undefined),
          [name.slice(CUSTOM.length)]: was ?? null,
        }
      else values[name] = was
    }
    if (conflicts.length > 0) throw changedSince(`changed since: ${conflicts.join(', ')}`)
    return values
  }
  const [outcome] = await revertSet(tx, entity, [{ id, past }])
  if ('error' in outcome!) throw outcome.error
}

const CUSTOM = 'custom_fields.'

const fieldOf = (record: AgxRecord, name: string): unknown =>
  name.startsWith(CUSTOM)
    ? new Map(Object.entries(record.custom_fields as object)).get(name.slice(CUSTOM.length))
    : record[name]

/** What the entries changed together: from the first to the last value, each custom field by itself. */
function netChanges(entries: Entry[]): Map<string, { from: unknown; to: unknown }> {
  const net = new Map<string, { from: unknown; to: unknown }>()
  const note = (name: string, from: unknown, to: unknown) =>
    net.set(name, { from: net.has(name) ? net.get(name)!.from : from, to })
  for (const { changes } of entries)
    for (const [name, { from, to }] of Object.entries(changes)) {
      if (name !== 'custom_fields') {
        note(name, from, to)
        continue
      }
      const [before, after] = [from, to].map((one) => new Map<string, unknown>(Object.entries(one ?? {})))
      for (const key of new Set([...before!.keys(), ...after!.keys()]))
        if (!isDeepStrictEqual(before!.get(key), after!.get(key)))
          note(`${CUSTOM}${key}`, before!.get(key), after!.get(key))
    }
  return net
}

/**
 * Throws `conflict` if a record that the job created was linked since, or is still referred to by another record that
 * the job created, whose own undo was refused.
 */
async function requireUnused(
  tx: Tenant,
  jobId: string,
  entity: KindName,
  id: string,
  at: Date,
): Promise<void> {
  const { rows } = await tx.trx.raw<{
    rows: { entity: KindName; id: string; isLater: boolean; isOfJob: boolean }[]
  }>(
    `with ends as (
       select b_entity as entity, b_id as id, created_at from associations
         where organization_id = :organization and a_id = :id and a_entity = :entity
       union all
       select a_entity, a_id, created_at from associations
         where organization_id = :organization and b_id = :id and b_entity = :entity)
     select e.entity, e.id, not made.here and e.created_at > :at as "isLater", made.here as "isOfJob"
     from ends e cross join lateral (
       select exists (select from record_history h where h.organization_id = :organization and h.job_id = :jobId
                      and h.record_id = e.id and h.action = 'created') as here) made`,
    { organization: tx.organizationId, id, entity, at, jobId },
  )
  const refersHere = (kind: KindName) => referencesOf(kinds[kind], entity).length > 0
  const holders = rows.filter((row) => row.isLater || (row.isOfJob && refersHere(row.entity)))
  for (const kind of new Set(holders.map((row) => row.entity))) {
    const ids = holders.flatMap((row) => (row.entity === kind ? row.id : []))
    const live = await tx
      .trx(kind)
      .where({ organization_id: tx.organizationId })
      .whereIn('id', ids)
      .whereNull('deleted_at')
      .first('id')
    if (live) throw changedSince(`the record is associated with ${kinds[kind].object} ${live.id}`)
  }
}
