import type { Tenant } from '../postgres/tenancy.ts'
import { currencyFor } from './currency.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { checkLinks, filledBy, lockWithLinked, splitLinks } from './given-links.ts'
import type { EntityName } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import { creation } from './model/prepare.ts'
import type { AgxRecord, RecordInput } from './model/schemas.ts'
import { referenceErrors } from './references.ts'
import { inSets, type Outcome, recordOf, settleEach } from './sets.ts'
import { takenAmong } from './taken.ts'
import { type Draft, writeSet } from './write-set.ts'

/**
 * Creates a record. `input`: what `createSchema` parsed. `sole`: nothing else follows in its transaction. Throws
 * `conflict` for an external_id or a unique custom field that is taken, `validation_error` for references and links to
 * records that do not exist and for custom fields that do not match their definitions.
 */
export async function createRecord(
  tx: Tenant,
  entity: EntityName,
  input: RecordInput,
  { sole = false }: { sole?: boolean } = {},
): Promise<AgxRecord> {
  return recordOf(await createSet(tx, entity, [input], sole))
}

/** Creates many records, in a number of statements that does not depend on how many. Errors as of `createRecord`. */
export const createMany = (tx: Tenant, entity: EntityName, inputs: RecordInput[]): Promise<Outcome[]> =>
  inSets(tx, inputs, (tx, set) => createSet(tx, entity, set))

/** Throws as `writeSet` does. */
export async function createSet(
  tx: Tenant,
  entity: EntityName,
  inputs: RecordInput[],
  sole = false,
): Promise<Outcome[]> {
  if (inputs.length === 0) return []
  const kind = entities[entity]
  const given = inputs.map(splitLinks)
  const allFields = given.map(({ fields }) => fields)
  const allLinks = given.flatMap(({ links }) => links)
  // Sent together, in this order.
  const [rules, withCurrency, locked] = await Promise.all([
    lockFieldRules(tx, entity),
    currencyFor(tx, kind, allFields),
    lockWithLinked(tx, kind, [], allLinks),
  ])
  const drafts = await settleEach(given, ({ links, fields }): Draft => {
    checkLinks(links, locked)
    const values = withCurrency({ ...fields, ...filledBy(links, kind, fields) })
    const write = creation(tx.actor, kind, values, rules)
    return { record: write.record, write, links }
  })
  const records = drafts.flatMap((draft) => ('error' in draft ? [] : [draft.record]))
  const refused = await referenceErrors(
    tx,
    kind,
    records.map((record) => ({ record })),
  )
  const rest = records.filter(({ id }) => !refused.has(id))
  for (const [id, error] of await takenAmong(tx, kind, rules, rest)) refused.set(id, error)
  return writeSet(tx, kind, rules, drafts, { refused, sole })
}
