import { invalid } from '../errors.ts'
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
import { referenceIssues } from './references.ts'
import type { Failed, Outcome } from './sets.ts'
import { externalIdTaken, takenAmong } from './taken.ts'
import { writeRecords } from './write.ts'

/** A change of a record that passed its checks; without a `write` nothing but its links changes. */
export interface Draft extends Linked {
  record: AgxRecord
  write: Write | undefined
}

/**
 * Checks the references of drafts of one kind, and whether new records would take what others have, and writes those
 * that pass. `rules`: undefined where no custom fields are written. `sole`: nothing else follows in the transaction.
 * Throws as `writeSound` does.
 */
export async function writeSet(
  tx: Tenant,
  kind: Kind,
  rules: Rules | undefined,
  drafts: (Draft | Failed)[],
  sole: boolean,
): Promise<Outcome[]> {
  const writes = drafts.flatMap((draft) => ('error' in draft ? [] : (draft.write ?? [])))
  const referring = writes.map(({ record, previous }) => ({
    record,
    only: previous && Object.keys(previous),
  }))
  const issues = await referenceIssues(tx, kind, referring)
  const refused = new Map([...issues].map(([id, found]) => [id, invalid(found)]))
  const created = writes.filter(({ action, record }) => action === 'created' && !refused.has(record.id))
  for (const [id, error] of await takenAmong(tx, kind, rules, created)) refused.set(id, error)
  const checked = drafts.map((draft) => {
    const error = 'error' in draft ? undefined : refused.get(draft.record.id)
    return error ? { error } : draft
  })
  const sound = checked.flatMap((draft) => ('error' in draft ? [] : [draft]))
  await writeSound(tx, kind, rules, sound, sole)
  return checked.map((draft): Outcome => {
    if ('error' in draft) return draft
    const { record, write } = draft
    return { record, created: write?.action === 'created', changed: write !== undefined }
  })
}

/**
 * Writes drafts with all that follows from them: histories, events, unique values, links. Throws `conflict` where an
 * external_id or a unique value is taken; then the transaction, or the savepoint, must be rolled back.
 */
export async function writeSound(
  tx: Tenant,
  kind: Kind,
  rules: Rules | undefined,
  drafts: Draft[],
  sole = false,
): Promise<void> {
  const writes = drafts.flatMap(({ write }) => write ?? [])
  const linked = linkChanges(tx, kind, drafts)
  const follows = linked.gone.length > 0 || linked.made.length > 0 || (rules && hasUnique(rules))
  if (sole && !follows) tx.last()
  await writeRecords(tx, kind, writes).catch((error: unknown) => {
    // Of several records it does not say which one: each is tried alone then, see `inSets`.
    throw sqlState(error) === UNIQUE_VIOLATION ? externalIdTaken(kind, writes[0]!.record) : error
  })
  if (rules) await claimUnique(tx, kind, rules, writes)
  await changeLinks(tx, linked)
  // Linking fills the references at the other ends too; of a link within the kind only this one's are filled.
  for (const { record, links } of drafts)
    for (const to of links)
      if (to.entity !== kind.entity) await fillReference(tx, to, { entity: kind.entity, id: record.id })
}

const UNIQUE_VIOLATION = '23505'
