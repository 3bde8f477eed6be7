import type { Knex } from 'knex'
import { NIL, v7 as uuidv7 } from 'uuid'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { open, type SecretsKey, seal } from '../process/seal.ts'
import { type MailOutcome, mailsIn, recordAttempt } from '../queue/mails.ts'
import { LINK_PATHS, type LinkKind, usableLink } from './link-tokens.ts'

/**
 * Mails to the people of an account: the links of invitations, password resets and sign-ups, and what owners must know.
 * A row is written with what it tells of, in one transaction, and sent by the relay. Only the hash of a link's token is
 * stored where the link works; the mail has the token sealed, until there is no further attempt.
 */

/**
 * Those without a link: `sign_up_known` is for a sign-up with the address of an account, whose password was not given;
 * `webhook_disabled` for an outgoing webhook that the service deactivated.
 */
export type AccountMailKind = LinkKind | 'sign_up_known' | 'webhook_disabled'

export const isLinkKind = (kind: AccountMailKind): kind is LinkKind => Object.hasOwn(LINK_PATHS, kind)

/** The organization of mails about an account, which belongs to none. */
export const NO_ORGANIZATION = NIL

/** What the text says beside the link. */
export interface AccountMailDetails {
  organization_name?: string
  /** Who invites. */
  invited_by?: string
  /** ISO 8601; of the link. */
  expires_at?: string
  webhook_name?: string
  /** Why the service deactivated the webhook. */
  reason?: string
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

/** Queues a mail without a link to each owner of the organization. */
export async function mailOwners(
  tx: Tenant,
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
  if (owners.length === 0) return
  await trx('account_mails').insert(
    owners.map(({ address, organization_name }) => ({
      organization_id,
      id: uuidv7(),
      kind,
      address,
      details: JSON.stringify({ organization_name, ...details }),
    })),
  )
  tx.wake('agx_mails')
}

/** What the token of a mail is sealed for. */
export const ownerOfMail = (organizationId: string, id: string) => `${organizationId}.mail.${id}`

/** A claimed mail. */
export interface ClaimedAccountMail {
  organization_id: string
  id: string
  kind: AccountMailKind
  address: string
  details: AccountMailDetails
  sealed: string | null
  /** This one included. */
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

/** Whether a link still works: the invitation may have been withdrawn, or the reset used or replaced. */
export async function linkWorks(system: System, kind: LinkKind, token: string): Promise<boolean> {
  return (await usableLink(system, kind, token).first('expires_at')) !== undefined
}

/** Records how an attempt ended. Without a further attempt, the token is deleted. */
export const recordAccountMail = (
  tx: Tenant,
  mail: ClaimedAccountMail,
  outcome: MailOutcome,
): Promise<void> => recordAttempt(tx, 'account_mails', mail, outcome, 'sealed')
