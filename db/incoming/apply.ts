import { AppError } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { fitCustomFields, fitMapped } from './check-mapped.ts'
import type { Mapped } from './mapping/types.ts'
import type { Payload } from './parse-body.ts'
import { type Saved, saveMapped, updateMapped } from './save.ts'
import { startWorkflow } from './start-workflow.ts'
import type { IncomingWebhook } from './types.ts'

/** The mapping with valid values. Throws validation_error with everything that is wrong with it. */
export function fitted(webhook: IncomingWebhook, mapped: Mapped): Mapped {
  const fit = fitMapped(webhook, mapped)
  if (!('issues' in fit)) return fit.mapped
  throw new AppError('validation_error', reason(webhook, mapped), { issues: fit.issues })
}

function reason({ target_entity }: IncomingWebhook, { sender, fields, company_name }: Mapped): string {
  if (Object.keys(fields).length > 0 || company_name !== undefined)
    return 'the payload does not map to a valid record'
  return `the payload${sender ? ` of ${sender}` : ''} has nothing of a ${target_entity.toLowerCase()}`
}

/** What a payload wrote. */
export interface Applied extends Saved {
  runId: string | null
  warnings: string[]
}

/**
 * Writes the record of a mapping from `fitted` and queues the workflow, in the caller's transaction.
 * @param onto the record that an earlier writing of the same payload made: it is updated, and nothing else is repeated.
 */
export async function applyMapped(
  tx: Tenant,
  webhook: IncomingWebhook,
  payload: Payload,
  mapped: Mapped,
  onto?: string,
): Promise<Applied> {
  const warnings = mapped.warnings ?? []
  if (onto) return { ...(await updateMapped(tx, webhook, mapped, onto)), runId: null, warnings }
  const saved = await saveMapped(tx, webhook, mapped)
  const { runId = null, warning } = await startWorkflow(tx, webhook, payload, saved)
  return { ...saved, runId, warnings: [...warnings, ...(warning ? [warning] : [])] }
}

/** Leaves out the custom fields that their definitions refuse, if automatic mapping guessed them. */
export async function withFittingCustomFields(
  tx: Tenant,
  webhook: IncomingWebhook,
  mapped: Mapped,
): Promise<Mapped> {
  if (Object.keys((mapped.fields.custom_fields as object) ?? {}).length === 0) return mapped
  // The write checks them again: other issues refuse the payload there, with those of the record.
  return (await fitCustomFields(tx, webhook, mapped)).mapped
}
