import { belongsToCompany } from './mapping/targets.ts'
import type { Mapped } from './mapping/types.ts'
import { FURTHER_KINDS, type FurtherKind, type IncomingWebhook } from './types.ts'

/** By what a mapping writes a record of a further kind: the target of a rule, and its member of `Mapped`. */
const PLACES = {
  companies: { target: 'company_name', member: 'company_name' },
  notes: { target: 'note_content', member: 'note' },
} as const satisfies Record<FurtherKind, { target: string; member: keyof Mapped }>

/** The target of rules that write records of a further kind. */
export const targetOf = (kind: FurtherKind): string => PLACES[kind].target

/** The kinds beside its own that the mapping of a webhook can write: in automatic mode any, else those that rules name. */
export function furtherKinds({
  kind,
  field_mapping,
}: Pick<IncomingWebhook, 'kind' | 'field_mapping'>): FurtherKind[] {
  if (kind === 'none') return []
  return FURTHER_KINDS.filter(
    (further) =>
      (further !== 'companies' || belongsToCompany(kind)) &&
      (field_mapping.mode === 'automatic' || field_mapping.rules.some(({ to }) => to === targetOf(further))),
  )
}

/** A mapping without the records that its webhook does not write, with a warning for each. */
export function withoutOthers(mapped: Mapped, alsoWrites: readonly FurtherKind[]): Mapped {
  const left = FURTHER_KINDS.filter(
    (kind) => !alsoWrites.includes(kind) && mapped[PLACES[kind].member]?.trim(),
  )
  if (left.length === 0) return mapped
  const rest = { ...mapped, sources: { ...mapped.sources }, warnings: [...(mapped.warnings ?? [])] }
  for (const kind of left) {
    const { target, member } = PLACES[kind]
    const from = rest.sources[target]
    rest.warnings.push(
      `${target}${from ? ` (from ${from})` : ''} was left out: the webhook does not write ${kind} (also_writes)`,
    )
    delete rest[member]
    delete rest.sources[target]
  }
  return rest
}
