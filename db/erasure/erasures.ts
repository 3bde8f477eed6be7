import { v7 as uuidv7 } from 'uuid'
import { recordChange } from '../access/audit-log.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import { personOf } from '../model/erasure/person.ts'
import { notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { ownedBy } from '../records/identities.ts'
import { FORGET_MEMBERS } from '../records/lists/members.ts'
import { lockLives, lockReferencesTo } from '../records/lock.ts'
import { mergedInto, recordNotFound } from '../records/merged.ts'
import { clearReferencesTo } from '../records/primaries.ts'
import type { ToReview } from './treat.ts'

/** An erasure as the API shows it: it never names the person. */
export interface Erasure {
  id: string
  contact_id: string
  erased: Record<string, number>
  to_review: ToReview[]
  review_count: number
  /** Runs and jobs that have the person, and must end first. */
  waiting: number
  created_by: Actor
  created_at: Date
  ended_at: Date | null
}

const COLUMNS = [
  'id',
  'contact_id',
  'erased',
  'to_review',
  'review_count',
  'waiting',
  'created_by',
  'created_at',
  'ended_at',
]

const erasures = (tx: Tenant) => tx.trx('erasures').where({ organization_id: tx.organizationId })

/** Throws `not_found`. */
export async function getErasure(tx: Tenant, id: string): Promise<Erasure> {
  const row = await erasures(tx).where({ id }).first<Erasure | undefined>(COLUMNS)
  if (!row) throw notFound('erasure')
  return row
}

/** Newest first. */
export const listErasures = (tx: Tenant, page: IdPage): Promise<Page<Erasure>> =>
  pageById<Erasure>(tx, erasures(tx).select(COLUMNS), page, { of: ['erasures'] })

/** What an erasure of a contact would delete at once, and what it would end or list. */
export interface ErasurePreview {
  /** With those that were merged into it. */
  contacts: number
  consents: number
  history: number
  files: number
  deliveries: number
  runs: number
  open_runs: number
  /** Notes, activities and tasks. */
  linked: number
}

/** Throws `not_found`. */
export async function previewErasure(tx: Tenant, contactId: string): Promise<ErasurePreview> {
  const contacts = await idsOf(tx, contactId)
  const owned = await ownedBy(tx, 'contacts', contacts)
  const ids = [...contacts, ...owned.flatMap((one) => one.ids)]
  const { rows } = await tx.trx.raw<{ rows: Omit<ErasurePreview, 'contacts' | 'consents' | 'linked'>[] }>(
    `select
       (select count(*)::integer from record_history where organization_id = :of and record_id = any(:ids)) as history,
       (select count(*)::integer from files where organization_id = :of and record_id = any(:ids)) as files,
       (select count(*)::integer from deliveries where organization_id = :of and subject_id = any(:ids)) as deliveries,
       (select count(*)::integer from runs where organization_id = :of and record_id = any(:ids)) as runs,
       (select count(*)::integer from runs where organization_id = :of and record_id = any(:ids) and ended_at is null)
         as open_runs`,
    { of: tx.organizationId, ids } as never,
  )
  return {
    contacts: contacts.length,
    consents: ids.length - contacts.length,
    ...rows[0]!,
    linked: (await linkedWith(tx, ids)).length,
  }
}

/**
 * Deletes a contact for good, with the contacts that were merged into it, their consents, histories, links, files and
 * deliveries, and what has not been sent of them; a deleted contact, too. No event is raised. Workers then erase the
 * person from everything else, see advance.ts. Throws `not_found`. @returns the id of the erasure.
 */
export async function eraseContact(
  tx: Tenant,
  contactId: string,
  { byName }: { byName: boolean },
): Promise<string> {
  await lockLives(tx)
  const ids = await idsOf(tx, contactId)
  await lockReferencesTo(tx, 'contacts', ids)
  const states = await statesOf(tx, ids)
  const owned = await ownedBy(tx, 'contacts', ids)
  const all = [...ids, ...owned.flatMap((one) => one.ids)]
  const person = personOf(all, states)
  const to_review = [...(await linkedWith(tx, all)), ...(await usersWith(tx, person.emails))]
  const counts = await deleteRecords(tx, owned)
  await clearReferencesTo(tx, 'contacts', contactId)
  const erased = { ...counts, ...(await deleteAll(tx, all)) }
  const id = uuidv7()
  await tx.trx('erasures').insert({
    organization_id: tx.organizationId,
    id,
    contact_id: contactId,
    person: JSON.stringify(person),
    by_name: byName,
    erased: JSON.stringify(erased),
    to_review: JSON.stringify(to_review),
    review_count: to_review.length,
    created_by: JSON.stringify(tx.actor),
  })
  await recordChange(tx, 'contact.erased', { id: contactId, name: 'a contact', details: { erasure_id: id } })
  tx.wake('agx_erasures')
  return id
}

/** The contact, also a deleted one, locked, and those that were merged into it. Throws `not_found`. */
async function idsOf(tx: Tenant, contactId: string): Promise<string[]> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    'select id from contacts where organization_id = ? and id = ? for update',
    [tx.organizationId, contactId],
  )
  if (rows.length === 0 || (await mergedInto(tx, 'contacts', contactId)))
    throw await recordNotFound(tx, kinds.contacts, contactId)
  const losers = await tx
    .trx('merged_records')
    .where({ organization_id: tx.organizationId, merged_into: contactId })
    .select<{ id: string }[]>('id')
  return [contactId, ...losers.map(({ id }) => id)]
}

/** The contacts as they are, with their alternate keys, and as their histories have them. */
async function statesOf(tx: Tenant, ids: string[]): Promise<Record<string, unknown>[]> {
  const of = [tx.organizationId, ids] as never
  const { rows } = await tx.trx.raw<{ rows: { state: Record<string, unknown> }[] }>(
    `select to_jsonb(c) as state from contacts c where organization_id = ? and id = any(?)
     union all
     select jsonb_build_object(k.value ->> 'field', k.value -> 'value') from contacts c,
       jsonb_array_elements(c.alternate_keys) k where organization_id = ? and id = any(?)
     union all
     select (select jsonb_object_agg(f.key, f.value -> 'to') from jsonb_each(h.changes) f) from record_history h
     where organization_id = ? and record_id = any(?)`,
    [...of, ...of, ...of] as never,
  )
  return rows.map(({ state }) => state ?? {})
}

/** Notes, activities and tasks that are linked with the records: their texts may be about the person. */
async function linkedWith(tx: Tenant, ids: string[]): Promise<ToReview[]> {
  const { rows } = await tx.trx.raw<{ rows: { entity: 'notes' | 'activities' | 'tasks'; id: string }[] }>(
    `select distinct entity, id from (
       select b_entity as entity, b_id as id from associations where organization_id = :of and a_id = any(:ids)
       union all
       select a_entity, a_id from associations where organization_id = :of and b_id = any(:ids)) linked
     where entity in ('notes', 'activities', 'tasks') order by entity, id limit 1000`,
    { of: tx.organizationId, ids } as never,
  )
  return rows.map(({ entity, id }) => ({ object: kinds[entity].object, id, reason: 'linked' }))
}

/** The person may be a user, too. */
async function usersWith(tx: Tenant, emails: string[]): Promise<ToReview[]> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select u.id from users u join memberships m on m.user_id = u.id
     where m.organization_id = ? and lower(u.email) = any(select lower(e) from unnest(?::text[]) e)`,
    [tx.organizationId, emails] as never,
  )
  return rows.map(({ id }) => ({ object: 'user', id, reason: 'linked' }))
}

/** Deletes records that belong to the contacts. @returns their number by kind. */
async function deleteRecords(
  tx: Tenant,
  owned: { kind: KindName; ids: string[] }[],
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { kind, ids } of owned) {
    if (ids.length === 0) continue
    await tx.trx(kind).where({ organization_id: tx.organizationId }).whereIn('id', ids).delete()
    counts[kinds[kind].object] = ids.length
  }
  return counts
}

/** Deletes all that belongs to the contacts. @returns the number of rows by what they are. */
async function deleteAll(tx: Tenant, ids: string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const drop = async (object: string, table: string, where: string) => {
    const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
      `delete from ${table} where organization_id = :of and ${where}`,
      { of: tx.organizationId, ids } as never,
    )
    if (rowCount > 0) counts[object] = (counts[object] ?? 0) + rowCount
  }
  // Before the events, with which they go.
  await drop('delivery', 'deliveries', 'subject_id = any(:ids)')
  // What is not matched yet would become deliveries and runs; workers delete the others.
  await drop('event', 'events', 'matched_at is null and subject_id = any(:ids)')
  await drop('contact', 'contacts', 'id = any(:ids)')
  await drop('history_entry', 'record_history', 'record_id = any(:ids)')
  await drop('alternate_key', 'alternate_keys', 'record_id = any(:ids)')
  await drop('custom_field_value', 'custom_field_values', 'record_id = any(:ids)')
  await drop('merged_record', 'merged_records', 'merged_into = any(:ids)')
  await drop('association', 'associations', '(a_id = any(:ids) or b_id = any(:ids))')
  await drop('file', 'files', 'record_id = any(:ids)')
  await tx.trx.raw(
    `with gone as (select cast(:of as uuid) as organization_id, unnest(cast(:ids as uuid[])) as id), ${FORGET_MEMBERS}
     select count(*) from forgotten`,
    { of: tx.organizationId, ids } as never,
  )
  return counts
}
