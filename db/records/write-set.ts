import { type AppError, conflict } from '../errors.ts'
import { sqlState } from '../postgres/sql-state.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { claimUnique } from './custom-fields/unique.ts'
import { changeLinks, type Linked, linkChanges } from './links.ts'
import type { Rules } from './model/custom-fields/types.ts'
import type { Kind } from './model/kind.ts'
import type { Write } from './model/prepare.ts'
import type { AgxRecord } from './model/schemas.ts'
import { hasUnique } from './model/unique.ts'
import { fillReference } from './primaries.ts'
import type { Failed, Outcome } from './sets.ts'
import { writeRecords } from './write.ts'

/** A change of a record that passed its checks; without a `write` nothing but its links changes. */
export interface Draft extends Linked {
  record: AgxRecord
  write: Write | undefined
}

/**
 * Writes drafts of one kind, with all that follows from them: histories, events, unique values, links. A draft that
 * failed, or whose record is in `refused` by its id, is left out. `rules`: undefined where no custom fields are written.
 * Throws `conflict` where an external_id or a unique value is taken; then the transaction, or the savepoint, must be
 * rolled back.
 */
export async function writeSet(
  tx: Tenant,
  kind: Kind,
  rules: Rules | undefined,
  drafts: (Draft | Failed)[],
  { refused, sole }: { refused?: Map<string, AppError>; sole?: boolean } = {},
): Promise<Outcome[]> {
  const sound = drafts.flatMap((draft) => ('error' in draft || refused?.has(draft.record.id) ? [] : [draft]))
  const writes = sound.flatMap(({ write }) => write ?? [])
  const linked = linkChanges(tx, kind, sound)
  const follows = linked.gone.length > 0 || linked.made.length > 0 || (rules && hasUnique(rules))
  if (sole && !follows) tx.last()
  await writeRecords(tx, kind, writes).catch((error: unknown) => {
    // Of several records it does not say which one: each is tried alone then, see `inSets`.
    throw sqlState(error) === UNIQUE_VIOLATION ? externalIdTaken(kind, writes[0]!.record) : error
  })
  if (rules) await claimUnique(tx, kind, rules, writes)
  await changeLinks(tx, linked)
  // Linking fills the references at the other ends too; of a link within the kind only this one's are filled.
  for (const { record, links } of sound)
    for (const to of links)
      if (to.entity !== kind.entity) await fillReference(tx, to, { entity: kind.entity, id: record.id })
  return drafts.map((draft): Outcome => {
    if ('error' in draft) return draft
    const error = refused?.get(draft.record.id)
    if (error) return { error }
    const { record, write } = draft
    return { record, created: write?.action === 'created', changed: write !== undefined }
  })
}

const UNIQUE_VIOLATION = '23505'

export const externalIdTaken = (kind: Kind, record: AgxRecord): AppError =>
  conflict(`another ${kind.object} has the external_id ${record.external_id}`, { param: 'external_id' })
