import type { MergeableKind } from '../../workflows/shared/record-kinds.ts'
import { insertEvents } from '../events/outbox.ts'
import { invalid } from '../model/errors.ts'
import { requireVersion } from '../model/lists/version.ts'
import { type AlternateKey, mergedKeys, mergedLists } from '../model/records/alternate-keys.ts'
import { sizeIssues } from '../model/records/custom-fields/shape.ts'
import { type Kind, type KindName, referencesOf, withArticle } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { change, isEmpty, nextVersion, type Write } from '../model/records/prepare.ts'
import type { AgxRecord, RecordInput } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { moveFiles } from '../stored-files/files.ts'
import { keepKeys } from './alternate-keys.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { hasSensitive, moveSensitive } from './custom-fields/sensitive.ts'
import { freeUnique } from './custom-fields/unique.ts'
import { settleIdentities } from './identities.ts'
import { moveLinks } from './links.ts'
import { copyMemberships } from './lists/members.ts'
import { lockExisting, lockLives, lockRecords, lockReferencesTo } from './lock.ts'
import { pointTo, recordNotFound } from './merged.ts'
import { moveReferences } from './primaries.ts'
import { reachableFrom } from './references.ts'
import type { Update } from './update.ts'
import { writeRecords } from './write.ts'
import { writeDrafts } from './write-set.ts'

/**
 * Merges a duplicate (the loser) into a record (the winner). Empty fields of the winner are filled from the loser, `true`
 * wins over `false`, tags and custom fields are combined, links, references and files move. The loser is deleted
 * permanently; its id points to the winner, whose history includes the loser's. The winner always gets a new version.
 * Throws `not_found`; `version_conflict` for the winner's version; `validation_error` if the two are the same record, or
 * their custom fields exceed a limit.
 */
export async function mergeRecords(
  tx: Tenant,
  kind: MergeableKind,
  winnerId: string,
  loserId: string,
  { ifVersion }: Pick<Update, 'ifVersion'> = {},
): Promise<AgxRecord> {
  const definition = kinds[kind]
  if (winnerId === loserId)
    throw invalid([
      {
        loc: ['body', 'from'],
        msg: `${withArticle(definition.object)} cannot be merged into itself`,
        type: 'self_reference',
      },
    ])
  const [, rules] = await Promise.all([lockLives(tx), lockFieldRules(tx, kind)])
  await lockReferencesTo(tx, kind, [loserId], [winnerId, loserId])
  await settleIdentities(tx, kind, loserId, winnerId)
  const found = await lockRecords(tx, kind, [winnerId, loserId], 'for update')
  let winner = found.get(winnerId)
  const loser = found.get(loserId)
  if (!winner || !loser) throw await recordNotFound(tx, definition, winner ? loserId : winnerId)
  requireVersion(definition.object, winner.version, ifVersion)

  await moveReferences(tx, kind, loserId, winnerId)
  // A sum of records that have moved is another now.
  winner = (await lockRecords(tx, kind, [winnerId])).get(winnerId) ?? winner
  await writeRecords(tx, definition, [nextVersion('deleted', tx.actor, loser)])
  await freeUnique(tx, loserId)
  await pointTo(tx, definition, loserId, winnerId)
  const keys = mergedKeys(definition, winner, loser)
  await keepKeys(tx, kind, { winnerId, loserId, keys })
  await moveLinks(tx, { entity: kind, id: loserId }, { entity: kind, id: winnerId })
  await moveFiles(tx, kind, loserId, winnerId)
  await copyMemberships(tx, loserId, winnerId)
  if (hasSensitive(rules)) await moveSensitive(tx, loserId, winnerId)

  const write = await fold(tx, definition, winner, loser, keys)
  const { record } = write
  await writeDrafts(tx, definition, rules, [{ record, write, links: [] }])
  await tx
    .trx('record_history')
    .where({ organization_id: tx.organizationId, record_id: winnerId, version: record.version })
    .update({ merged_from: loserId })
  await insertEvents(tx, [{ name: `${definition.object}.merged`, data: { ...record, merged_from: loserId } }])
  return record
}

/** The winner's next version. */
async function fold(
  tx: Tenant,
  kind: Kind,
  winner: AgxRecord,
  loser: AgxRecord,
  keys: AlternateKey[],
): Promise<Write> {
  const patch: RecordInput = {
    ...filledFields(kind, winner, loser),
    ...(await filledReferences(tx, kind, winner, loser)),
    tags: [...new Set([...(winner.tags as string[]), ...(loser.tags as string[])])],
    ...mergedLists(kind, winner, loser),
  }
  // Not part of the patch, which is checked against the definitions: values older than a definition stay.
  const custom_fields = { ...(loser.custom_fields as object), ...(winner.custom_fields as object) }
  const issues = sizeIssues(custom_fields)
  if (issues.length > 0) throw invalid(issues)
  // What fills an empty field is the record's own key.
  const alternate_keys = keys.filter(({ field, value }) => patch[field] !== value)
  const next = { ...winner, ...patch, custom_fields, alternate_keys }
  const changed = change(tx.actor, kind, winner, patch, next)
  return {
    ...(changed ?? nextVersion('merged', tx.actor, winner)),
    action: 'merged',
    previous: changed?.previous ?? {},
  }
}

function filledFields(kind: Kind, winner: AgxRecord, loser: AgxRecord): RecordInput {
  const filled: RecordInput = {}
  for (const [name, { readOnly, to }] of [...Object.entries(kind.fields), ...COMMON]) {
    // `false` counts as unset; `true`, such as do_not_contact, wins.
    const isUnset = isEmpty(winner[name]) || (winner[name] === false && loser[name] === true)
    if (!readOnly && !to && isUnset && !isEmpty(loser[name])) filled[name] = loser[name]
  }
  // A filled amount brings its currency.
  const money = Object.keys(filled).some((name) => kind.fields[name]?.type === 'money')
  return money ? { ...filled, currency: loser.currency } : filled
}

const COMMON: [string, { readOnly?: true; to?: KindName }][] = [
  ['external_id', {}],
  ['owner_id', {}],
]

/**
 * Fills the winner's references that are null or point to the loser with the loser's, unless they would close a cycle.
 */
async function filledReferences(
  tx: Tenant,
  kind: Kind,
  winner: AgxRecord,
  loser: AgxRecord,
): Promise<RecordInput> {
  const filled: RecordInput = {}
  for (const [name, { to }] of referencesOf(kind)) {
    if (winner[name] !== null && winner[name] !== loser.id) continue
    const id = loser[name]
    const isUsable =
      typeof id === 'string' &&
      id !== winner.id &&
      (await lockExisting(tx, to, [id])).has(id) &&
      !(await reachableFrom(tx, kind, name, id)).has(winner.id)
    filled[name] = isUsable ? id : null
  }
  return filled
}
