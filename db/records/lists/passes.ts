import { NIL } from 'uuid'
import type { Tenant } from '../../postgres/tenancy.ts'
import { definePagedJobs, type JobKey } from '../../queue/paged-jobs.ts'
import { COMPARED, type ComparedList, type Report, settleInTime } from './changes.ts'
import { completeChanges } from './settle.ts'

/**
 * Passes over all records of a kind for a filter list: the first fills it and raises no events; one whose records also
 * enter and leave without a change of their own, such as with the time, is compared again and again. A page takes the next
 * records by id, members and others, and stores its progress in the same transaction.
 */

/** Minutes from a pass of such a list to the next. */
export const PASS_MINUTES = 60

/** Lists of one organization in work at once. */
const SLOTS = 1

/** By the time at which they are due: a list that is due every hour comes after one that waits to be filled. */
export const listPasses = definePagedJobs<JobKey>('lists', 'due_at <= now()', SLOTS, [], 'due_at, id')

type PassedList = ComparedList & { after_id: string | null; drifts: boolean; deleted_at: Date | null }

/** Compares the next records with the list, or removes members of a deleted one. @returns whether there may be more. */
export async function comparePage(
  tx: Tenant,
  { id }: JobKey,
  limit: number,
  report?: Report,
): Promise<boolean> {
  const row = () => tx.trx('lists').where({ organization_id: tx.organizationId, id })
  const list = await row()
    .whereRaw('due_at <= now()')
    .forNoKeyUpdate()
    .first<PassedList | undefined>(...COMPARED, 'after_id', 'drifts', 'deleted_at')
  if (!list) return false
  if (list.deleted_at) return removeNext(tx, id, limit)
  const ids = await nextRecords(tx, list, limit)
  const changes = await settleInTime(tx, [list], ids, { report })
  const silent = new Set(list.filled_at ? [] : [id])
  await completeChanges(tx, changes, { cause: 'comparison', silent })
  // A problem has ended the pass.
  if (!(await row().whereRaw('due_at <= now()').first('id'))) return false
  const more = ids.length === limit
  if (more) await row().update({ after_id: ids.at(-1) })
  else
    await row().update({
      after_id: null,
      problem: null,
      due_at: list.drifts ? tx.trx.raw(`now() + interval '${PASS_MINUTES} minutes'`) : null,
      filled_at: list.filled_at ?? tx.trx.fn.now(),
    })
  return more
}

/** The ids of the next live records and members, in order. */
async function nextRecords(tx: Tenant, list: PassedList, limit: number): Promise<string[]> {
  const after = list.after_id ?? NIL
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `(select id from ${list.entity} where organization_id = ? and deleted_at is null and id > ? order by id limit ?)
     union
     (select record_id from list_members where organization_id = ? and list_id = ? and record_id > ?
      order by record_id limit ?)
     order by id limit ?`,
    [tx.organizationId, after, limit, tx.organizationId, list.id, after, limit, limit],
  )
  return rows.map(({ id }) => id)
}

/** Removes members of a deleted list, and then its row. */
async function removeNext(tx: Tenant, id: string, limit: number): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `delete from list_members where organization_id = ? and list_id = ? and record_id = any(array(
       select record_id from list_members where organization_id = ? and list_id = ? limit ?))`,
    [tx.organizationId, id, tx.organizationId, id, limit],
  )
  if (rowCount === limit) return true
  await tx.trx('lists').where({ organization_id: tx.organizationId, id }).delete()
  return false
}
