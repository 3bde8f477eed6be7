import { conflict } from '../../model/errors.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { lockExisting } from '../lock.ts'
import { lockList } from './lists.ts'
import { completeChanges, type MemberChange } from './settle.ts'

/** Members that one request adds and removes. */
export const MAX_CHANGED = 200

export type MemberStatus = 'added' | 'removed' | 'unchanged' | 'not_found'

export interface MemberResult {
  id: string
  status: MemberStatus
}

/**
 * Adds records to a static list, and removes others. Idempotent. Throws `not_found`, `conflict` for a filter list.
 * @returns a result for each id, those of `add` first.
 */
export async function changeMembers(
  tx: Tenant,
  listId: string,
  { add, remove }: { add: string[]; remove: string[] },
): Promise<MemberResult[]> {
  const list = await lockList(tx, listId)
  if (list.type === 'filter')
    throw conflict('the members of a filter list are the records that match its query', {
      hint: 'change its query, or create a list of type static',
    })
  // Against a deletion whose event workers would compare before this commit.
  const live = await lockExisting(tx, list.entity, add)
  const of = [tx.organizationId, list.id]
  const added = await tx.trx.raw<{ rows: { record_id: string }[] }>(
    `insert into list_members (organization_id, list_id, record_id, entered)
     select ?::uuid, ?::uuid, id, true from unnest(?::uuid[]) as r (id)
     on conflict do nothing returning record_id`,
    [...of, [...live]] as never,
  )
  const removed = await tx.trx.raw<{ rows: { record_id: string; entered: boolean }[] }>(
    `delete from list_members where organization_id = ? and list_id = ? and record_id = any(?::uuid[])
     returning record_id, entered`,
    [...of, remove] as never,
  )
  const changes: MemberChange[] = [
    ...added.rows.map(({ record_id }) => ({ list, record_id, entered: true })),
    // The event of a deleted record was raised with its deletion.
    ...removed.rows.flatMap(({ record_id, entered }) => (entered ? { list, record_id, entered: false } : [])),
  ]
  await completeChanges(tx, changes, { cause: 'members' })
  const isAdded = new Set(added.rows.map(({ record_id }) => record_id))
  const isRemoved = new Set(removed.rows.map(({ record_id }) => record_id))
  return [
    ...add.map((id): MemberResult => {
      return { id, status: isAdded.has(id) ? 'added' : live.has(id) ? 'unchanged' : 'not_found' }
    }),
    ...remove.map((id): MemberResult => ({ id, status: isRemoved.has(id) ? 'removed' : 'unchanged' })),
  ]
}

/** The winner of a merge is in the static lists of the loser; workers raise the events with that of its change. */
export async function copyMemberships(tx: Tenant, loserId: string, winnerId: string): Promise<void> {
  await tx.trx.raw(
    `insert into list_members (organization_id, list_id, record_id, entered)
     select m.organization_id, m.list_id, ?::uuid, false
     from list_members m join lists l on l.organization_id = m.organization_id and l.id = m.list_id
     where m.organization_id = ? and m.record_id = ? and l.type = 'static' and l.deleted_at is null
     order by m.list_id on conflict do nothing`,
    [winnerId, tx.organizationId, loserId],
  )
}

/**
 * SQL: the parts of a statement that removes the members among `gone` (organization_id, id), records that are deleted for
 * good, from all lists. No event is raised.
 */
export const FORGET_MEMBERS = `forgotten as (
    delete from list_members m using gone
    where m.organization_id = gone.organization_id and m.record_id = gone.id
    returning m.organization_id, m.list_id, m.entered
  ), counted_members as (
    update lists l set member_count = l.member_count - f.n
    from (select organization_id, list_id, count(*) as n from forgotten where entered group by 1, 2) f
    where l.organization_id = f.organization_id and l.id = f.list_id
  )`
