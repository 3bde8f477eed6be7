import { UUID } from '../../workflows/shared/uuid.ts'
import { AppError } from '../model/errors.ts'
import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { getEntry, type ReplayedEntry } from './replay-entries.ts'
import { webhooksOf } from './webhooks.ts'

/** A captured request of a webhook that starts a workflow. */
export interface Sample {
  webhook: IncomingWebhook
  entry: ReplayedEntry
}

/** Webhooks of one workflow whose samples are read: a sample can have a megabyte. */
const MOST = 3

/**
 * The samples of the newest webhooks that select one of these workflows, as their workflow or as a listener; those that
 * the log no longer has are left out.
 */
export async function findSamples(
  tx: Tenant,
  workflowIds: string[],
  isReadable: (webhook: IncomingWebhook) => boolean,
): Promise<Sample[]> {
  if (workflowIds.length === 0) return []
  const webhooks = (await webhooksOf(tx, workflowIds)).filter(
    (webhook) => webhook.sample_log_id !== null && isReadable(webhook),
  )
  const samples: Sample[] = []
  for (const webhook of webhooks.slice(0, MOST)) {
    const entry = await getEntry(tx, webhook.id, webhook.sample_log_id!).catch(undefinedIfIncomplete)
    if (entry) samples.push({ webhook, entry })
  }
  return samples
}

/** The id of a workflow, or those of the newest workflows with a name. */
export async function idsOf(tx: Tenant, workflow: string): Promise<string[]> {
  if (UUID.test(workflow)) return [workflow]
  const rows = await tx
    .trx('workflows')
    .where({ organization_id: tx.organizationId, name: workflow })
    .whereNull('deleted_at')
    .orderBy('created_at', 'desc')
    .limit(MOST)
    .select<{ id: string }[]>('id')
  return rows.map(({ id }) => id)
}

function undefinedIfIncomplete(error: unknown): undefined {
  if (error instanceof AppError && ['not_found', 'conflict'].includes(error.type)) return undefined
  throw error
}
