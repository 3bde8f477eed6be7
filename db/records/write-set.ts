import { type AppError, invalid } from '../model/errors.ts'
import type { Rules } from '../model/records/custom-fields/types.ts'
import type { Kind } from '../model/records/kind.ts'
import type { Write } from '../model/records/prepare.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { hasUnique } from '../model/records/unique.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { changesKeys, keepListed, listedElsewhere } from './alternate-keys.ts'
import { hasSensitive, keepSensitive } from './custom-fields/sensitive.ts'
import { claimUnique } from './custom-fields/unique.ts'
import { changeLinks, type Linked, linkChanges } from './links.ts'
import { lockRecords } from './lock.ts'
import { fillReference } from './primaries.ts'
import { referenceIssues } from './references.ts'
import type { Failed, Outcome } from './sets.ts'
import { isSumOf } from './sums.ts'
import { takenAmong } from './taken.ts'
import { writeRecords } from './write.ts'

/** A checked change of a record; without a `write` only its links change. */
export interface Draft extends Linked {
  record: AgxRecord
  write: Write | undefined
}

/**
 * Checks the references of drafts of one kind and the unique values of new records, and writes the drafts that pass.
 * `rules`: undefined if no custom fields are written. `isLast`: the last step of the transaction. Throws as
 * `writeDrafts` does.
 */
export async function writeSet(
  tx: Tenant,
  kind: Kind,
  rules: Rules | undefined,
  drafts: (Draft | Failed)[],
  isLast: boolean,
): Promise<Outcome[]> {
  const writes = drafts.flatMap((draft) => ('error' in draft ? [] : (draft.write ?? [])))
  const referring = writes.map(({ record, previous }) => ({
    record,
    only: previous && Object.keys(previous),
  }))
  const issues = await referenceIssues(tx, kind, referring)
  const refused = new Map<string, AppError>([...issues].map(([id, found]) => [id, invalid(found)]))
  for (const [id, error] of await listedElsewhere(tx, kind, writes)) refused.set(id, error)
  const created = writes.filter(({ action, record }) => action === 'created' && !refused.has(record.id))
  for (const [id, error] of await takenAmong(tx, kind, rules, created)) refused.set(id, error)
  const checked = drafts.map((draft) => {
    const error = 'error' in draft ? undefined : refused.get(draft.record.id)
    return error ? { error } : draft
  })
  const valid = checked.flatMap((draft) => ('error' in draft ? [] : [draft]))
  await writeDrafts(tx, kind, rules, valid, isLast)
  // Links to what is summed have changed the sums of these records.
  const summed = valid.filter(({ links }) => links.some(({ entity }) => isSumOf(kind, entity)))
  const current = await lockRecords(
    tx,
    kind.entity,
    summed.map(({ record }) => record.id),
  )
  return checked.map((draft): Outcome => {
    if ('error' in draft) return draft
    const { record, write } = draft
    return {
      record: current.get(record.id) ?? record,
      created: write?.action === 'created',
      changed: write !== undefined,
    }
  })
}

/**
 * Writes drafts with their histories, events, unique values and links. Throws `conflict` if an external_id or a unique
 * value is taken; then the transaction, or the savepoint, must be rolled back.
 */
export async function writeDrafts(
  tx: Tenant,
  kind: Kind,
  rules: Rules | undefined,
  drafts: Draft[],
  isLast = false,
): Promise<void> {
  const writes = drafts.flatMap(({ write }) => write ?? [])
  const linked = linkChanges(tx, kind, drafts)
  const hasMore =
    kind.sums ||
    linked.gone.length > 0 ||
    linked.made.length > 0 ||
    (rules && hasUnique(rules)) ||
    writes.some(changesKeys)
  if (rules && hasSensitive(rules)) await keepSensitive(tx, kind.entity, rules, writes)
  if (isLast && !hasMore) tx.last()
  await writeRecords(tx, kind, writes)
  if (rules) await claimUnique(tx, kind, rules, writes)
  await keepListed(tx, kind.entity, writes)
  await changeLinks(tx, linked)
  // A link fills the references of the other end too, except for a link between two records of one kind.
  for (const { record, links } of drafts)
    for (const to of links)
      if (to.entity !== kind.entity) await fillReference(tx, to, { entity: kind.entity, id: record.id })
}
