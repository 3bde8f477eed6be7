import type { Issue } from '../model/errors.ts'
import { fitCustomFields } from '../model/incoming/fit.ts'
import type { Mapped } from '../model/incoming/mapping/types.ts'
import type { Payload } from '../model/incoming/parse-body.ts'
import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import { type Saved, saveAll, type ToSave, updateMapped } from './save.ts'
import { startWorkflows } from './start-workflow.ts'

/** What a payload wrote. */
export interface Applied extends Saved {
  runId: string | null
  warnings: string[]
}

/** A payload with its mapping from `fitted`. */
export interface ToApply extends ToSave {
  payload: Payload
}

/**
 * Writes the records of mappings and queues the workflow for each, in the caller's transaction. Throws as `saveAll`.
 */
export async function applyAll(tx: Tenant, webhook: IncomingWebhook, all: ToApply[]): Promise<Applied[]> {
  if (all.length === 0) return []
  const saved = await saveAll(tx, webhook, all)
  const started = await startWorkflows(tx, webhook, all, saved)
  return saved.map((one, i) => {
    const { runId = null, warning } = started[i]!
    return { ...one, runId, warnings: [...(all[i]!.mapped.warnings ?? []), ...(warning ? [warning] : [])] }
  })
}

/**
 * Writes the record of one mapping.
 * @param onto the record that an earlier writing of the same payload made: it is updated, and nothing else is repeated.
 */
export async function applyMapped(
  tx: Tenant,
  webhook: IncomingWebhook,
  payload: Payload,
  mapped: Mapped,
  onto?: string,
): Promise<Applied> {
  if (!onto) return (await applyAll(tx, webhook, [{ payload, mapped }]))[0]!
  const warnings = mapped.warnings ?? []
  return { ...(await updateMapped(tx, webhook, mapped, onto)), runId: null, warnings }
}

/** Leaves out the custom fields that their definitions refuse, if automatic mapping guessed them. */
export async function withFittingCustomFields(
  tx: Tenant,
  webhook: IncomingWebhook,
  mapped: Mapped,
): Promise<Mapped> {
  if (Object.keys((mapped.fields.custom_fields as object) ?? {}).length === 0) return mapped
  // The write checks them again: other issues refuse the payload there, with those of the record.
  return (await fitToDefinitions(tx, webhook, mapped)).mapped
}

/** The mapping with custom fields that their definitions accept, and the issues of the others. Locks the definitions. */
export async function fitToDefinitions(
  tx: Tenant,
  webhook: IncomingWebhook,
  mapped: Mapped,
): Promise<{ mapped: Mapped; issues: Issue[] }> {
  return fitCustomFields(webhook, await lockFieldRules(tx, webhook.kind), mapped)
}
