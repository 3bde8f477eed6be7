import type { System, Tenant } from '../postgres/tenancy.ts'
import { FAILED_FOR_DAYS } from './attempts.ts'
import { createReplay, previewReplay } from './replays.ts'
import { setOutgoingStatus } from './webhooks.ts'

/**
 * What an operator does for the webhooks of all organizations after an outage of the service's own network, in which the
 * receivers of all of them seemed to fail. Each webhook is a transaction of its own organization.
 */

export interface WebhookKey {
  organization_id: string
  id: string
}

/** What was turned off because it failed for days; a receiver that answered 410 wants no more. */
const TURNED_OFF = { status: 'Inactive', status_reason: FAILED_FOR_DAYS }

/** The webhooks of one organization, or of all, that the service turned off because they failed for days. */
export const listTurnedOff = (system: System, organizationId?: string): Promise<WebhookKey[]> =>
  listWebhooks(system, organizationId).where(TURNED_OFF)

/** The Active webhooks of one organization, or of all. */
export const listActive = (system: System, organizationId?: string): Promise<WebhookKey[]> =>
  listWebhooks(system, organizationId).where({ status: 'Active' })

const listWebhooks = (system: System, organizationId?: string) =>
  system('outgoing_webhooks')
    .modify((query) => {
      if (organizationId !== undefined) query.where({ organization_id: organizationId })
    })
    .orderBy(['organization_id', 'id'])
    .select<WebhookKey[]>('organization_id', 'id')

/**
 * Activates a webhook that the service turned off, which sends what was held, and writes the audit log of its
 * organization. @returns whether it was still turned off.
 */
export async function activateTurnedOff(tx: Tenant, id: string): Promise<boolean> {
  const found = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id, ...TURNED_OFF })
    .forUpdate()
    .first('id')
  if (!found) return false
  await setOutgoingStatus(tx, id, 'Active')
  return true
}

const failedSince = (since: Date) => ({ include: ['failed' as const], since, until: new Date() })

/** The number of events since a moment whose deliveries to the webhook failed for good. Throws as `previewReplay`. */
export const countFailed = (tx: Tenant, id: string, since: Date): Promise<number> =>
  previewReplay(tx, id, failedSince(since))

/** Starts a replay of these. @returns its id. Throws as `createReplay`. */
export const replayFailed = (tx: Tenant, id: string, since: Date): Promise<string> =>
  createReplay(tx, id, failedSince(since))
