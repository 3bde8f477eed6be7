import { v7 as uuidv7 } from 'uuid'
import { notFound } from '../model/errors.ts'
import type { NewLog } from '../model/incoming/log.ts'
import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { insertLog } from './logs.ts'
import { getEntry } from './replay-entries.ts'
import { getIncomingWebhook } from './webhooks.ts'

/** Samples: a request of a webhook, by which its mapping is made. A sample is a log entry, so that it can be replayed. */

/** Captures the next request of the next minutes. Throws not_found. */
export async function captureNext(tx: Tenant, id: string, minutes: number): Promise<IncomingWebhook> {
  return update(tx, id, {
    capturing_until: tx.trx.raw('now() + make_interval(mins => ?)', [minutes]),
    sample_log_id: null,
  })
}

/** Takes a log entry as the sample. Throws not_found; conflict for an entry without its whole payload. */
export async function captureEntry(tx: Tenant, id: string, logId: string): Promise<IncomingWebhook> {
  await getEntry(tx, id, logId)
  return update(tx, id, { capturing_until: null, sample_log_id: logId })
}

async function update(tx: Tenant, id: string, values: object): Promise<IncomingWebhook> {
  const count = await tx
    .trx('incoming_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .update(values)
  if (count === 0) throw notFound('webhook')
  return getIncomingWebhook(tx, id)
}

/**
 * Logs a request as the sample of its webhook; of concurrent requests the first one. @returns whether it was captured.
 */
export async function captureRequest(tx: Tenant, webhookId: string, log: NewLog): Promise<boolean> {
  const logId = uuidv7()
  const count = await tx
    .trx('incoming_webhooks')
    .where({ organization_id: tx.organizationId, id: webhookId })
    .where('capturing_until', '>', tx.trx.fn.now())
    .update({ capturing_until: null, sample_log_id: logId })
  if (count === 0) return false
  await insertLog(tx, log, logId)
  return true
}
