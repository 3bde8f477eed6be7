import type { Knex } from 'knex'
import { NIL, v7 as uuidv7 } from 'uuid'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { open, type SecretsKey, seal } from '../process/seal.ts'
import { type MailOutcome, mailsIn, type RecordedMail, recordAttempt } from '../queue/mails.ts'
import { LINK_PATHS, type LinkKind, usableLink } from './link-tokens.ts'

/**
 * Account mails: links of invitations, password resets and sign-ups, and notices to owners. A row is inserted in the
 * transaction of the change that it reports, and sent by the relay. The table of the link has only the hash of the
 * token; the mail has the sealed token, until no further attempt is due.
 */

/**
 * Kinds without a link: `sign_up_known` for a sign-up with the address of an account but not its password;
 * `webhook_disabled` for an outgoing webhook that the service deactivated; `source_failing` for a source of an incoming
 * webhook whose polls keep failing; `runs_skipped` for runs that events did not start, because there were too many;
 * `task_reminder` for the assignee of a task.
 */
export type AccountMailKind =
  | LinkKind
  | 'sign_up_known'
  | 'webhook_disabled'
  | 'source_failing'
  | 'runs_skipped'
  | 'task_reminder'

export const isLinkKind = (kind: AccountMailKind): kind is LinkKind => Object.hasOwn(LINK_PATHS, kind)

/** The organization id of mails about an account, which belong to no organization. */
export const NO_ORGANIZATION = NIL

/** The variable parts of a mail's text, besides the link. */
export interface AccountMailDetails {
  organization_name?: string
  /** The name of the inviting member. */
  invited_by?: string
  /** The expiry of the link, ISO 8601. */
  expires_at?: string
  webhook_name?: string
  /** The workflow of the first run that was skipped. */
  workflow_name?: string
  /** The reason why the service deactivated the webhook or skipped runs, or why polls fail. */
  reason?: string
  reminder?: TaskReminder
}

interface NewAccountMail {
  kind: AccountMailKind
  address: string
  token?: string
  invitation_id?: string
  details?: AccountMailDetails
}

/** Queues a mail. The caller wakes `agx_mails` once its transaction has committed. */
export async function insertAccountMail(
  { trx, organizationId }: { trx: Knex; organizationId: string },
  key: SecretsKey,
  { kind, address, token, invitation_id, details = {} }: NewAccountMail,
): Promise<void> {
  const id = uuidv7()
  await trx('account_mails').insert({
    organization_id: organizationId,
    id,
    kind,
    address,
    invitation_id: invitation_id ?? null,
    details: JSON.stringify(details),
    sealed: token === undefined ? null : seal(key, token, ownerOfMail(organizationId, id)),
  })
}

/** The reminder of a task that a mail is about. The mail has no text of the task: that is read when it is sent. */
export interface TaskReminder {
  task_id: string
  user_id: string
  /** ISO 8601. */
  reminder_at: string
}

/** Queues the mails of reminders. */
export async function insertReminderMails(
  tx: Pick<Tenant, 'trx' | 'organizationId' | 'wake'>,
  mails: readonly { address: string; reminder: TaskReminder }[],
): Promise<void> {
  const details = mails.map(({ address, reminder }) => ({ address, details: { reminder } }))
  await insertMails(tx, 'task_reminder', details)
}

/** Queues mails without a link. */
async function insertMails(
  tx: Pick<Tenant, 'trx' | 'organizationId' | 'wake'>,
  kind: Exclude<AccountMailKind, LinkKind>,
  mails: readonly { address: string; details: object }[],
): Promise<void> {
  if (mails.length === 0) return
  await tx.trx('account_mails').insert(
    mails.map(({ address, details }) => ({
      organization_id: tx.organizationId,
      id: uuidv7(),
      kind,
      address,
      details: JSON.stringify(details),
    })),
  )
  tx.wake('agx_mails')
}

/** Queues a mail without a link to each owner of the organization. */
export async function mailOwners(
  tx: Pick<Tenant, 'trx' | 'organizationId' | 'wake'>,
  kind: Exclude<AccountMailKind, LinkKind>,
  details: AccountMailDetails,
): Promise<void> {
  const { organizationId: organization_id, trx } = tx
  const owners = await trx('memberships as m')
    .join('users as u', 'u.id', 'm.user_id')
    .join('organizations as o', 'o.id', 'm.organization_id')
    .where({ 'm.organization_id': organization_id, 'm.role': 'owner' })
    .select<{ address: string; organization_name: string }[]>(
      'u.email as address',
      'o.name as organization_name',
    )
  await insertMails(
    tx,
    kind,
    owners.map(({ address, organization_name }) => ({ address, details: { organization_name, ...details } })),
  )
}

/** The owner that a mail's token is sealed for. */
export const ownerOfMail = (organizationId: string, id: string) => `${organizationId}.mail.${id}`

/** A claimed mail. */
export interface ClaimedAccountMail {
  organization_id: string
  id: string
  kind: AccountMailKind
  address: string
  details: AccountMailDetails
  sealed: string | null
  /** Number of attempts, including this one. */
  attempts: number
}

export const accountMails = mailsIn<ClaimedAccountMail>('account_mails', [
  'kind',
  'address',
  'details',
  'sealed',
  'attempts',
])

/** The token of a mail's link; undefined for a mail without one. Throws if no key opens it. */
export const openToken = (
  key: SecretsKey,
  { organization_id, id, sealed }: Pick<ClaimedAccountMail, 'organization_id' | 'id' | 'sealed'>,
): string | undefined => (sealed === null ? undefined : open(key, sealed, ownerOfMail(organization_id, id)))

/** Whether a link still works: an invitation can have been withdrawn, a reset used or replaced. */
export async function linkWorks(system: System, kind: LinkKind, token: string): Promise<boolean> {
  return (await usableLink(system, kind, token).first('expires_at')) !== undefined
}

/** Records the result of an attempt. The token is deleted if no further attempt is due. */
export const recordAccountMail = (
  tx: Tenant,
  mail: ClaimedAccountMail,
  outcome: MailOutcome,
): Promise<RecordedMail> => recordAttempt(tx, 'account_mails', mail, outcome, 'sealed')
