import type { System } from '../postgres/tenancy.ts'

/**
 * Addresses that get no mails of workflows: those that unsubscribed from the mails of an organization, and for all
 * organizations those whose mailbox does not exist or whose owner complained. Mails about accounts are sent anyway.
 */
export const SUPPRESSION_REASONS = ['unsubscribed', 'bounced', 'complained'] as const
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number]

/** `organizationId` undefined: for all organizations. */
export async function suppress(
  system: System,
  organizationId: string | undefined,
  reason: SuppressionReason,
  addresses: readonly string[],
): Promise<void> {
  await system.raw(
    `insert into mail_suppressions (organization_id, address, reason)
     select cast(? as uuid), address, ? from unnest(cast(? as text[])) as a(address)
     on conflict (organization_id, address) do nothing`,
    [organizationId ?? null, reason, [...new Set(addresses.map((one) => one.toLowerCase()))]],
  )
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
