import { notFound } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** What a member wants in one organization. They are columns of the membership, and end with it. */
export interface Preferences {
  /** Mails of the reminders of tasks that are assigned to the member. */
  task_reminder_mails: boolean
}

const COLUMNS = ['task_reminder_mails'] as const

/** The preferences of a member. Throws not_found. */
export const getPreferences = (tx: Tenant, userId: string): Promise<Preferences> =>
  changePreferences(tx, userId, {})

/** Changes those that are given. Throws not_found. */
export async function changePreferences(
  tx: Tenant,
  userId: string,
  changes: { [Name in keyof Preferences]?: Preferences[Name] | undefined },
): Promise<Preferences> {
  const own = tx.trx('memberships').where({ organization_id: tx.organizationId, user_id: userId })
  const [found] = await (Object.values(changes).some((value) => value !== undefined)
    ? own.update(changes).returning<Preferences[]>([...COLUMNS])
    : own.select<Preferences[]>(...COLUMNS))
  if (!found) throw notFound('member')
  return found
}
