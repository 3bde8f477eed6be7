import type { KindName } from '../model/records/kind.ts'
import { kindNames } from '../model/records/kinds/index.ts'
import type { System } from '../postgres/tenancy.ts'
import type { Purge } from '../retention/purge.ts'
import { ownedKinds } from './identities.ts'
import { FORGET_MEMBERS } from './lists/members.ts'
import { lastReferenceOf } from './primaries.ts'
import { RESTORABLE_DAYS } from './restore.ts'

/**
 * Purges records that can no longer be restored, with their links, unique values, files, memberships in lists and
 * histories. The history of a merged record and the pointer to its winner stay until the winner is purged. The history of
 * a record stays as long as the record.
 */
export const recordPurges: Purge[] = kindNames.map((kind) => ({
  name: `deleted ${kind}`,
  tables: [
    kind,
    'record_history',
    'associations',
    'merged_records',
    'alternate_keys',
    'custom_field_values',
    'sensitive_values',
    'files',
    'list_members',
  ],
  keeps: `${RESTORABLE_DAYS} days after their deletion`,
  index: `${kind}_deleted`,
  rows: 100,
  everyMinutes: 1,
  async batch(trx, rows) {
    const found = await trx.raw<{ rows: { deleted: number }[] }>(purgeOf(kind), [rows, kind, kind, kind])
    const { deleted } = found.rows[0]!
    return { deleted, more: deleted === rows }
  },
}))

/** The time for which a deleted record of an organization that is full can be restored. */
const FULL_HOURS = 1

/**
 * Purges deleted records of an organization that is full: otherwise its deletions would make room only after
 * RESTORABLE_DAYS. @returns the number of purged records.
 */
export async function purgeDeletedOf(system: System, organizationId: string): Promise<number> {
  let purged = 0
  for (const kind of kindNames)
    for (let deleted = BATCH; deleted === BATCH; purged += deleted) {
      const sql = purgeOf(kind, `organization_id = ? and deleted_at < now() - interval '${FULL_HOURS} hours'`)
      const found = await system.raw<{ rows: { deleted: number }[] }>(sql, [
        organizationId,
        BATCH,
        kind,
        kind,
        kind,
      ])
      deleted = found.rows[0]!.deleted
    }
  return purged
}

const BATCH = 200

const OLD = `deleted_at < now() - interval '${RESTORABLE_DAYS} days'`

/**
 * The delete of a record cuts off those that belong to it, but for a link, by which a restore finds them. Without it
 * they belong to nobody: they are deleted as of the same time, and so purged next. Others may be linked with it, too.
 */
const deleteCutOff = ({
  owned,
  reference,
}: {
  owned: KindName
  reference: string
}) => `, links_of_${owned} as (
    select l.organization_id, l.b_id as id, gone.id as owner, gone.deleted_at from gone join associations l
      on l.organization_id = gone.organization_id and l.a_id = gone.id and l.b_entity = '${owned}'
    union all
    select l.organization_id, l.a_id, gone.id, gone.deleted_at from gone join associations l
      on l.organization_id = gone.organization_id and l.b_id = gone.id and l.a_entity = '${owned}'
  ), cut_off_${owned} as (
    update ${owned} o set deleted_at = l.deleted_at from links_of_${owned} l
    where o.organization_id = l.organization_id and o.id = l.id and o.${reference} is null and o.deleted_at is null
      and ${lastReferenceOf('o', reference)} = l.owner::text
  )`

const purgeOf = (kind: KindName, which = OLD): string => `
  with gone as (
    delete from ${kind} where ctid = any(array(
      select ctid from ${kind}
      where ${which} order by deleted_at limit ?
      for update skip locked
    )) returning organization_id, id, deleted_at
  )${ownedKinds(kind).map(deleteCutOff).join('')}, pointers as (
    delete from merged_records m using gone
    where m.organization_id = gone.organization_id and m.merged_into = gone.id
    returning m.organization_id, m.id
  ), histories as (
    delete from record_history h using (
      select organization_id, id from pointers
      union
      select organization_id, id from gone
      where not exists (select from merged_records m
                        where m.organization_id = gone.organization_id and m.id = gone.id)
    ) done
    where h.organization_id = done.organization_id and h.record_id = done.id
  ), unique_values as (
    delete from custom_field_values v using gone
    where v.organization_id = gone.organization_id and v.record_id = gone.id
  ), sensitive as (
    delete from sensitive_values v using gone
    where v.organization_id = gone.organization_id and v.record_id = gone.id
  ), keys as (
    delete from alternate_keys k using gone
    where k.organization_id = gone.organization_id and k.record_id = gone.id
  ), ${FORGET_MEMBERS}, attached as (
    delete from files f using gone
    where f.organization_id = gone.organization_id and f.entity = ? and f.record_id = gone.id
  ), links_a as (
    delete from associations l using gone
    where l.organization_id = gone.organization_id and l.a_id = gone.id and l.a_entity = ?
  ), links_b as (
    delete from associations l using gone
    where l.organization_id = gone.organization_id and l.b_id = gone.id and l.b_entity = ?
  )
  select count(*) as deleted from gone`
