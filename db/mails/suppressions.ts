import { v7 as uuidv7 } from 'uuid'
import { recordChange } from '../access/audit-log.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'

/**
 * Addresses that get no mails of workflows: those that unsubscribed from the mails of an organization or that it added,
 * and for all organizations those whose mailbox does not exist or whose owner complained. Mails about accounts are sent
 * anyway.
 */
export const SUPPRESSION_REASONS = ['unsubscribed', 'bounced', 'complained', 'added'] as const
/** The reasons for which an address is suppressed for one organization, which can change them. */
export const OWN_REASONS = ['unsubscribed', 'added'] as const
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number]

/** `organizationId` undefined: for all organizations. */
export async function suppress(
  system: System,
  organizationId: string | undefined,
  reason: SuppressionReason,
  addresses: readonly string[],
): Promise<void> {
  const all = [...new Set(addresses.map((one) => one.toLowerCase()))]
  await system.raw(
    `insert into mail_suppressions (id, organization_id, address, reason)
     select id, cast(? as uuid), address, ?
     from unnest(cast(? as uuid[]), cast(? as text[])) as a(id, address)
     on conflict (organization_id, address) do nothing`,
    [organizationId ?? null, reason, all.map(() => uuidv7()), all],
  )
}

/** An address that gets no mails of one organization. */
export interface Suppression {
  id: string
  /** In lower case. */
  address: string
  reason: (typeof OWN_REASONS)[number]
  created_at: Date
}

const COLUMNS = ['id', 'address', 'reason', 'created_at'] as const

export interface SuppressionFilter {
  address?: string | undefined
  reason?: Suppression['reason'] | undefined
}

/** The suppressions of the organization, newest first. */
export function listSuppressions(
  tx: Tenant,
  { address, reason }: SuppressionFilter,
  page: IdPage,
): Promise<Page<Suppression>> {
  const rows = tx
    .trx('mail_suppressions')
    .where({ organization_id: tx.organizationId })
    .select([...COLUMNS])
  if (address !== undefined) rows.where({ address: address.toLowerCase() })
  if (reason !== undefined) rows.where({ reason })
  return pageById(tx, rows, page, { of: ['mail suppressions', address, reason] })
}

/** Suppresses an address for the organization. Throws conflict if it is suppressed. */
export async function addSuppression(tx: Tenant, address: string): Promise<Suppression> {
  const [row] = await tx
    .trx('mail_suppressions')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      address: address.toLowerCase(),
      reason: 'added',
    })
    .onConflict(['organization_id', 'address'])
    .ignore()
    .returning<Suppression[]>([...COLUMNS])
  if (!row) throw conflict(`${address} is suppressed already`, { param: 'address' })
  await recordChange(tx, 'mail_suppression.added', { id: row.id, name: row.address })
  return row
}

/** Mails the address again. Throws not_found. */
export async function removeSuppression(tx: Tenant, id: string): Promise<void> {
  const [row] = await tx
    .trx('mail_suppressions')
    .where({ organization_id: tx.organizationId, id })
    .delete()
    .returning<Suppression[]>([...COLUMNS])
  if (!row) throw notFound('mail suppression')
  const { address, reason } = row
  await recordChange(tx, 'mail_suppression.removed', { id, name: address, details: { reason } })
}

/** Which of these addresses get no mails of the organization, in lower case, and why. */
export async function findSuppressed(
  system: System,
  organizationId: string,
  addresses: readonly string[],
): Promise<Map<string, SuppressionReason>> {
  const rows = await system('mail_suppressions')
    .where((of) => of.where({ organization_id: organizationId }).orWhereNull('organization_id'))
    .whereIn(
      'address',
      addresses.map((one) => one.toLowerCase()),
    )
    .select<{ address: string; reason: SuppressionReason }[]>('address', 'reason')
  return new Map(rows.map(({ address, reason }) => [address, reason]))
}
