import { notFound } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** What a member wants in one organization. They are columns of the membership, and end with it. */
export interface Preferences {
  /** Mails of the reminders of tasks that are assigned to the member. */
  task_reminder_mails: boolean
}

const COLUMNS = ['task_reminder_mails'] as const

/** The preferences of a member. Throws not_found. */
export async function getPreferences(tx: Tenant, userId: string): Promise<Preferences> {
  return required(await membership(tx, userId).select<Preferences[]>(...COLUMNS))
}

/** Changes the given preferences of a member. Throws not_found. */
export async function changePreferences(
  tx: Tenant,
  userId: string,
  changes: { [Name in keyof Preferences]?: Preferences[Name] | undefined },
): Promise<Preferences> {
  if (Object.values(changes).every((value) => value === undefined)) return getPreferences(tx, userId)
  return required(
    await membership(tx, userId)
      .update(changes)
      .returning<Preferences[]>([...COLUMNS]),
  )
}

const membership = (tx: Tenant, userId: string) =>
  tx.trx('memberships').where({ organization_id: tx.organizationId, user_id: userId })

function required([found]: Preferences[]): Preferences {
  if (!found) throw notFound('member')
  return found
}
