import type { Finder } from '../model/erasure/person.ts'
import { redactRow } from '../model/erasure/redact.ts'
import { isRefusal } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { cancelRun } from '../runs/moves/ends.ts'
import type { Place } from './places.ts'
import type { FoundRow, Table } from './search.ts'

/** Something of the organization that a person must look at. */
export interface ToReview {
  object: string
  id: string
  /** `key`: an address or a number; `name`: only the name, which may be another's; `linked`: it was linked with it. */
  reason: 'key' | 'name' | 'linked'
}

/** What became of a row. */
export type Treated = 'unchanged' | 'erased' | 'busy' | ToReview

/** The columns of a log entry that its sender, or the person, has filled. */
const CLEARED = `headers = '{}', payload = null, payload_rest = null, payload_sealed = null, mapped_data = null,
  context = null, error_details = null, message = null, warnings = '{}', source_ip = '0.0.0.0', verified = false,
  fingerprint = null, record_id = null`

/** Treats a row that was found. One that cannot be changed is left to people. */
export async function treat(
  tx: Tenant,
  place: Place,
  table: Table,
  found: FoundRow,
  person: Finder,
  byName: boolean,
): Promise<Treated> {
  try {
    return await savepoint(tx, (inner) => treatRow(inner, place, table, found, person, byName))
  } catch (error) {
    if (!isRefusal(error)) throw error
    return { object: place.object, id: idOf(place, found), reason: 'key' }
  }
}

const idOf = (place: Place, { row }: FoundRow) => String(row[place.id ?? 'id'])

async function treatRow(
  tx: Tenant,
  place: Place,
  table: Table,
  foundRow: FoundRow,
  person: Finder,
  byName: boolean,
): Promise<Treated> {
  const { key, row, own, busy } = foundRow
  const treatment = own ? (place.ownTreatment ?? place.treatment) : place.treatment
  const { row: after, found } = redactRow(row, person, byName)
  if (!own && found === undefined) return 'unchanged'
  if (treatment === 'review' || (!own && found === 'name'))
    return { object: place.object, id: idOf(place, foundRow), reason: found ?? 'key' }
  if (busy) return 'busy'
  if (treatment === 'run') return endRun(tx, row)
  const where = `${place.table === 'organizations' ? 'true' : 'organization_id = :organizationId'} and (${table.key.join(', ')}) = (${key.map((_, i) => `:key${i}`).join(', ')})`
  const named = {
    organizationId: tx.organizationId,
    ...Object.fromEntries(key.map((one, i) => [`key${i}`, one])),
  }
  const isSame = (column: string) => JSON.stringify(after[column]) === JSON.stringify(row[column])
  if (treatment === 'delete' || (treatment === 'redact' && !table.key.every(isSame))) {
    await tx.trx.raw(`delete from ${table.name} where ${where}`, named)
    return 'erased'
  }
  if (treatment === 'clear') {
    await tx.trx.raw(`update ${table.name} set ${CLEARED} where ${where}`, named)
    return 'erased'
  }
  const changed = table.columns.filter((column) => !isSame(column))
  if (changed.length === 0) return 'unchanged'
  await tx.trx.raw(
    `update ${table.name} set (${changed.join(', ')}) =
       (select ${changed.map((column) => `n.${column}`).join(', ')} from jsonb_populate_record(null::${table.name}, :after) n)
     where ${where}`,
    { ...named, after: JSON.stringify(Object.fromEntries(changed.map((column) => [column, after[column]]))) },
  )
  return 'erased'
}

/** Deletes a run about the contact with its files; an open one is cancelled first, and ends before the next search. */
async function endRun(tx: Tenant, { id, ended_at }: Record<string, unknown>): Promise<Treated> {
  if (ended_at === null) {
    await cancelRun(tx, id as string, 'the person was erased')
    return 'busy'
  }
  await tx
    .trx('files')
    .where({ organization_id: tx.organizationId, run_id: id })
    .whereNull('record_id')
    .delete()
  await tx.trx('runs').where({ organization_id: tx.organizationId, id }).delete()
  return 'erased'
}
