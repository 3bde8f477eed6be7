import type { Issue } from '../model/errors.ts'
import { fitToRules } from '../model/incoming/fit.ts'
import type { RequestContext } from '../model/incoming/log.ts'
import { hasNoEffect, type Mapped } from '../model/incoming/mapping/types.ts'
import type { Payload } from '../model/incoming/parse-body.ts'
import type { IncomingWebhook, TargetKind, Write } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import { type Saved, saveAll, type ToSave, updateMapped } from './save.ts'
import { startWorkflows } from './start-workflow.ts'

/** What a payload wrote; `record`: null for a webhook without records, and for an update of none. */
export interface Applied {
  action: Write
  record: Saved['record']
  /** The runs that were queued. */
  runIds: string[]
  warnings: string[]
}

type WrittenRecord = Pick<Applied, 'action' | 'record'> & { warnings?: string[] }

/** A payload with its mapping from `fitted`. */
export interface ToApply extends ToSave {
  payload: Payload
  context?: RequestContext | null
}

/**
 * Writes the records of mappings and queues the workflow for each, in the caller's transaction. Throws as `saveAll`.
 */
export async function applyAll(tx: Tenant, webhook: IncomingWebhook, all: ToApply[]): Promise<Applied[]> {
  if (all.length === 0) return []
  const isWritten = ({ mapped }: ToApply) => hasRecords(webhook) && mapped.skip === undefined
  const written = hasRecords(webhook) ? await saveAll(tx, webhook, all.filter(isWritten)) : []
  const saved = all.map((one) => (isWritten(one) ? written.shift()! : withoutRecord(one)))
  const started = await startWorkflows(tx, webhook, all, saved)
  return saved.map(({ warnings: ofRecord = [], ...one }, i) => {
    const { runIds, warnings } = started[i]!
    return { ...one, runIds, warnings: [...(all[i]!.mapped.warnings ?? []), ...ofRecord, ...warnings] }
  })
}

function withoutRecord({ mapped }: ToApply): WrittenRecord {
  const action = hasNoEffect(mapped) ? 'skipped' : 'triggered'
  const warnings = mapped.skip === undefined ? [] : [`${mapped.skip}: no record was written`]
  return { action, record: null, warnings }
}

/** Whether the requests of a webhook write records. */
export const hasRecords = <T extends Pick<IncomingWebhook, 'kind'>>(
  webhook: T,
): webhook is T & { kind: TargetKind } => webhook.kind !== 'none'

/**
 * Writes the record of one mapping.
 * @param onto the record that an earlier writing of the same payload made: it is updated, and nothing else is repeated.
 */
export async function applyMapped(
  tx: Tenant,
  webhook: IncomingWebhook,
  one: ToApply,
  onto?: string,
): Promise<Applied> {
  if (!onto || !hasRecords(webhook)) return (await applyAll(tx, webhook, [one]))[0]!
  const warnings = one.mapped.warnings ?? []
  return { ...(await updateMapped(tx, webhook, one.mapped, onto)), runIds: [], warnings }
}

/** Leaves out the custom fields and stages that the organization's rules refuse, if automatic mapping guessed them. */
export async function withFittingValues(
  tx: Tenant,
  webhook: IncomingWebhook,
  mapped: Mapped,
): Promise<Mapped> {
  if (!hasRecords(webhook)) return mapped
  const { custom_fields, pipeline, stage } = mapped.fields
  const needsRules = Object.keys((custom_fields as object) ?? {}).length > 0 || (pipeline ?? stage) != null
  if (!needsRules) return mapped
  // The write checks them again: other issues refuse the payload there, with those of the record.
  return (await fitToOrganization(tx, webhook, mapped)).mapped
}

/** The mapping with the values that the organization's rules accept, and the issues of the others. Locks the rules. */
export async function fitToOrganization(
  tx: Tenant,
  webhook: IncomingWebhook & { kind: TargetKind },
  mapped: Mapped,
): Promise<{ mapped: Mapped; issues: Issue[] }> {
  return fitToRules(webhook, await lockFieldRules(tx, webhook.kind), mapped)
}
