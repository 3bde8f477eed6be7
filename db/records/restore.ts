import { notFound } from '../model/errors.ts'
import { requireVersion } from '../model/lists/version.ts'
import { present, shownColumns } from '../model/records/columns.ts'
import { type Kind, type KindName, referencesOf } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { resettled } from '../model/records/pipelines/pipeline.ts'
import { nextVersion } from '../model/records/prepare.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { lockExisting, lockForRestore, lockLives, lockRecords } from './lock.ts'
import { mergedInto, recordNotFound } from './merged.ts'
import { clearedReference, holdersToRefill, refillReferencesTo } from './primaries.ts'
import { closesCycle } from './references.ts'
import type { Update } from './update.ts'
import { writeDrafts } from './write-set.ts'

/** How long a deleted record can be restored. */
export const RESTORABLE_DAYS = 30

/**
 * Restores a deleted record and its links. References that deletes have cleared, to the record and from it, are filled
 * again if they are still null; a deal whose stage is gone goes to one with the same outcome. Throws `not_found` for a
 * record that is not deleted or was deleted too long ago; `conflict` if its external_id or the value of a unique custom
 * field is taken.
 */
export async function restoreRecord(
  tx: Tenant,
  kind: KindName,
  id: string,
  { ifVersion }: Pick<Update, 'ifVersion'> = {},
): Promise<AgxRecord> {
  const definition = kinds[kind]
  await lockLives(tx, true)
  const rules = await lockFieldRules(tx, kind)
  await lockForRestore(tx, kind, await holdersToRefill(tx, kind, id), [
    id,
    ...(await ownTargets(tx, definition, id)),
  ])
  const { rows } = await tx.trx.raw<{ rows: Record<string, unknown>[] }>(
    `select ${shownColumns(definition).join(', ')} from ${kind}
     where organization_id = ? and id = ? and deleted_at > now() - interval '${RESTORABLE_DAYS} days' for update`,
    [tx.organizationId, id],
  )
  if (await mergedInto(tx, kind, id)) throw await recordNotFound(tx, definition, id)
  if (!rows[0]) throw notFound(`deleted ${definition.object}`)
  const before = present(definition, rows[0])
  requireVersion(definition.object, before.version, ifVersion)
  const now = new Date().toISOString()
  const place = rules.pipelines ? resettled(rules.pipelines, before, now) : {}
  const changed = Object.entries(place).filter(([name, value]) => before[name] !== value)
  const moved = await movedReferences(tx, definition, before)
  const write = nextVersion('restored', tx.actor, before, { ...moved, ...Object.fromEntries(changed) }, now)
  const { record } = write
  await writeDrafts(tx, definition, rules, [{ record, write, links: [] }])
  await refillReferencesTo(tx, kind, id)
  // With what refers to it again, its sums have changed.
  return (await lockRecords(tx, kind, [id])).get(id) ?? record
}

/** The records of the same kind that the record refers to, or referred to until a delete cleared the reference. */
async function ownTargets(tx: Tenant, kind: Kind, id: string): Promise<string[]> {
  const targets: string[] = []
  for (const [name, { to }] of referencesOf(kind)) {
    if (to !== kind.entity) continue
    const row = await tx.trx(kind.entity).where({ organization_id: tx.organizationId, id }).first(name)
    const target = row?.[name] ?? (await clearedReference(tx, { entity: kind.entity, id }, name, to))
    if (typeof target === 'string') targets.push(target)
  }
  return targets
}

/**
 * The references that the restore changes: a reference to a deleted record becomes null, one to a merged record points
 * to the winner, and one that a delete has cleared is filled if its record exists again.
 */
async function movedReferences(
  tx: Tenant,
  kind: Kind,
  before: AgxRecord,
): Promise<Record<string, string | null>> {
  const moved: Record<string, string | null> = {}
  for (const [name, { to }] of referencesOf(kind)) {
    const old = before[name]
    const now =
      typeof old === 'string'
        ? ((await mergedInto(tx, to, old)) ?? old)
        : await clearedReference(tx, { entity: kind.entity, id: before.id }, name, to)
    if (now === undefined) continue
    const held = (await lockExisting(tx, to, [now])).has(now)
    const next = held && !(await closesCycle(tx, kind, name, before.id, now)) ? now : null
    if (next !== old) moved[name] = next
  }
  return moved
}
