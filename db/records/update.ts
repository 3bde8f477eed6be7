import { requireVersion } from '../model/lists/version.ts'
import { withoutAlternateKeys } from '../model/records/alternate-keys.ts'
import { type Kind, type KindName, referencesOf } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { type Adding, change, patched } from '../model/records/prepare.ts'
import type { AgxRecord, RecordInput } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockListed } from './alternate-keys.ts'
import { currencyFiller } from './currency.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { checkLinks, filledBy, lockWithLinked, splitLinks } from './given-links.ts'
import type { GivenLink } from './links.ts'
import { localPhones } from './local-phones.ts'
import { localTimes } from './local-times.ts'
import { recordNotFound } from './merged.ts'
import { closesCycle } from './references.ts'
import { inSets, inWaves, type Outcome, recordOf, settleEach } from './sets.ts'
import { lockSums, mentionsSum, refuseSums, withSums } from './sums.ts'
import { type Draft, writeSet } from './write-set.ts'

/** A change of one record. */
export interface Update {
  id: string
  /** Parsed by `updateSchema` or `upsertSchema`: null clears, custom fields are merged key by key. */
  patch: RecordInput
  /** The accepted current versions; undefined accepts any. */
  ifVersion?: readonly number[] | undefined
  /** The parts of the patch that are merged into the record's values instead of replacing them. */
  adding?: Adding | undefined
  /** Values of the patch that are alternate keys of the record do not replace its own. */
  keepsKeys?: boolean
}

export interface UpdateOptions extends Pick<Update, 'ifVersion'> {
  /** The update is the last step of its transaction. */
  isLast?: boolean
}

/**
 * Updates a record. A patch without changes creates no version. `associations` of an upsert's patch create links, which
 * fill null reference fields. Throws `not_found`; `version_conflict` if `ifVersion` does not include the record's
 * version; the errors of `createRecord`; `validation_error` for a link of the record to itself.
 */
export async function updateRecord(
  tx: Tenant,
  kind: KindName,
  id: string,
  patch: RecordInput,
  { ifVersion, isLast = false }: UpdateOptions = {},
): Promise<AgxRecord> {
  return recordOf(await updateSet(tx, kind, [{ id, patch, ifVersion }], isLast))
}

/** Updates many records; several updates of one record apply in order. Errors as of `updateRecord`. */
export function updateMany(tx: Tenant, kind: KindName, updates: Update[]): Promise<Outcome[]> {
  const own = referencesOf(kinds[kind], kind).map(([name]) => name)
  const mayCloseCycle = ({ patch }: Update) =>
    own.length > 0 && (patch.associations != null || own.some((name) => patch[name] != null))
  // Two new references within the kind could close a cycle together.
  const keysOf = (update: Update) => (mayCloseCycle(update) ? [update.id, 'cycle'] : [update.id])
  return inWaves(updates, keysOf, (wave) => inSets(tx, wave, (tx, set) => updateSet(tx, kind, set)))
}

/** `updates`: at most one for each record. Throws as `writeSet` does. */
export async function updateSet(
  tx: Tenant,
  kind: KindName,
  updates: Update[],
  isLast = false,
): Promise<Outcome[]> {
  const definition = kinds[kind]
  const separated = updates.map((update) => ({ ...update, ...splitLinks(update.patch) }))
  const ids = separated.map(({ id }) => id)
  const allLinks = separated.flatMap(({ links }) => links)
  const needsRules =
    definition.hasPipelines || separated.some(({ fields }) => fields.custom_fields !== undefined)
  // Sent in one round trip, in this order.
  const [, rules, locked] = await Promise.all([
    lockListed(
      tx,
      kind,
      separated.map(({ fields }) => fields),
    ),
    needsRules ? lockFieldRules(tx, kind) : undefined,
    lockWithLinked(tx, definition, ids, allLinks),
  ])
  await lockSums(tx, definition, [
    ...ids.map((id) => definition.sums && locked.record({ entity: kind, id })?.[definition.sums.over]),
    ...separated.map(({ fields, links }) => {
      const given = { ...fields, ...filledBy(links, definition, fields) }
      return definition.sums && given[definition.sums.over]
    }),
  ])
  const summed = await withSums(
    tx,
    definition,
    separated.flatMap(({ id, fields }) => (mentionsSum(definition, fields) ? id : [])),
  )
  const withCurrency = currencyFiller(tx, definition)
  const withZone = localTimes(tx, definition)
  const withCountry = localPhones(tx, definition)
  const drafts = await settleEach(
    tx,
    separated,
    async ({ id, fields: given, links, ifVersion, adding, keepsKeys }): Promise<Draft> => {
      const self = { entity: kind, id }
      const before = locked.record(self)
      if (!before) throw await recordNotFound(tx, definition, id)
      checkLinks(links, locked, self)
      requireVersion(definition.object, before.version, ifVersion)
      if (summed.has(id)) refuseSums(definition, before, given)
      const zoned = await withCountry(await withZone(given, rules))
      const fields = keepsKeys ? withoutAlternateKeys(zoned, before) : zoned
      const patch = { ...fields, ...(await filledByLinks(tx, definition, before, fields, links)) }
      const next = await withCurrency(patched(definition, before, patch, rules, adding))
      const write = change(tx.actor, definition, before, patch, next, rules)
      return { record: write?.record ?? before, write, links }
    },
  )
  return writeSet(tx, definition, rules, drafts, isLast)
}

/** The reference fields that the links fill, except those that would close a cycle. */
async function filledByLinks(
  tx: Tenant,
  kind: Kind,
  before: AgxRecord,
  fields: RecordInput,
  links: GivenLink[],
): Promise<Record<string, string>> {
  if (links.length === 0) return {}
  const filled = filledBy(links, kind, { ...before, ...fields })
  for (const [name, other] of Object.entries(filled))
    if (await closesCycle(tx, kind, name, before.id, other)) delete filled[name]
  return filled
}
