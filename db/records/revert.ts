import { invalid } from '../model/errors.ts'
import { requireVersion } from '../model/lists/version.ts'
import { changedCustomFields } from '../model/records/custom-fields/values.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { type Pipeline, placeIssues, settled } from '../model/records/pipelines/pipeline.ts'
import { replacement } from '../model/records/prepare.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { lockWithLinked } from './given-links.ts'
import { recordNotFound } from './merged.ts'
import { type Outcome, recordOf, settleEach } from './sets.ts'
import { withoutSums, withSums } from './sums.ts'
import type { Update } from './update.ts'
import { type Draft, writeSet } from './write-set.ts'

/** Stored values by field, as the history has them. `custom_fields` are merged key by key: null removes a key. */
export type PastValues = Record<string, unknown>

/** The values that fields of a record shall have again. `past` is given the current record, locked. */
export interface Revert extends Pick<Update, 'id' | 'ifVersion'> {
  past: (current: AgxRecord) => Promise<PastValues> | PastValues
}

/**
 * Gives fields of records their former values, also fields that the service derives, such as `closed_at`. References and
 * unique values are checked as in any write, custom fields and stages by their current definitions. @returns an outcome
 * for each.
 */
export async function revertSet(tx: Tenant, kind: KindName, reverts: Revert[]): Promise<Outcome[]> {
  const definition = kinds[kind]
  const ids = reverts.map(({ id }) => id)
  // Sent in one round trip, in this order.
  const [rules, locked] = await Promise.all([
    lockFieldRules(tx, kind),
    lockWithLinked(tx, definition, ids, []),
  ])
  const summed = await withSums(tx, definition, ids)
  const drafts = await settleEach(tx, reverts, async ({ id, ifVersion, past }): Promise<Draft> => {
    const before = locked.record({ entity: kind, id })
    if (!before) throw await recordNotFound(tx, definition, id)
    requireVersion(definition.object, before.version, ifVersion)
    const { custom_fields, ...given } = await past(before)
    const values = summed.has(id) ? withoutSums(definition, given) : given
    if (custom_fields) values.custom_fields = changedCustomFields(rules, before.custom_fields, custom_fields)
    if (rules.pipelines) Object.assign(values, settledIn(rules.pipelines, { ...before, ...values }))
    const write = replacement(tx.actor, definition, before, values)
    return { record: write?.record ?? before, write, links: [] }
  })
  return writeSet(tx, definition, rules, drafts, false)
}

/** Throws `validation_error` if the organization no longer has the stage. */
function settledIn(pipelines: readonly Pipeline[], deal: PastValues): PastValues {
  const values = settled(pipelines, deal, new Date().toISOString())
  if (!values) throw invalid(placeIssues(pipelines, deal))
  return values
}

/** The custom fields that replace all current ones, as `PastValues` has them. */
export const replacingAll = (current: unknown, past: unknown): Record<string, unknown> => ({
  ...Object.fromEntries(Object.keys((current ?? {}) as object).map((name) => [name, null])),
  ...((past ?? {}) as object),
})

/** Fields whose values belong to other records, too. */
const NOT_REVERTED = ['alternate_keys']

/**
 * Gives a record the values that it had at a version. `check` receives the changed fields before they are written.
 * Throws `not_found`, `version_conflict`; `validation_error` for a version that the record never had.
 */
export async function revertRecord(
  tx: Tenant,
  kind: KindName,
  id: string,
  version: number,
  { ifVersion, check }: { ifVersion?: readonly number[] | undefined; check: (values: PastValues) => void },
): Promise<AgxRecord> {
  const past = async (current: AgxRecord) => {
    const values = await valuesAt(tx, kind, current, version)
    check(values)
    return values
  }
  return recordOf(await revertSet(tx, kind, [{ id, ifVersion, past }]))
}

/** A required reference is null only while its record is deleted, which a revert does not repeat. */
const wasCutOff = (kind: KindName, field: string, was: unknown) =>
  was === null && kinds[kind].fields[field]?.required === true

async function valuesAt(
  tx: Tenant,
  kind: KindName,
  { id, version: current, ...record }: AgxRecord,
  version: number,
) {
  if (version > current)
    throw invalid([
      {
        loc: ['body', 'version'],
        msg: 'the record has no such version',
        type: 'not_found',
        input: version,
        hint: `the current version is ${current}`,
      },
    ])
  // The oldest change behind the version knows the value that it had.
  const { rows } = await tx.trx.raw<{ rows: { field: string; was: unknown }[] }>(
    `select distinct on (field) field, change -> 'from' as was
     from record_history cross join lateral jsonb_each(changes) as c (field, change)
     where organization_id = ? and record_id = ? and version > ?
     order by field, version`,
    [tx.organizationId, id, version],
  )
  const values: PastValues = {}
  for (const { field, was } of rows)
    if (field === 'custom_fields') values.custom_fields = replacingAll(record.custom_fields, was)
    else if (!NOT_REVERTED.includes(field) && !wasCutOff(kind, field, was)) values[field] = was
  return values
}
