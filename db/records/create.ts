import type { Kind, KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { creation } from '../model/records/prepare.ts'
import type { AgxRecord, RecordInput } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockListed } from './alternate-keys.ts'
import { hasCopies, withCopies } from './copies.ts'
import { currencyFiller } from './currency.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { checkLinks, filledBy, lockWithLinked, splitLinks } from './given-links.ts'
import { localPhones } from './local-phones.ts'
import { localTimes } from './local-times.ts'
import { inSets, type Outcome, recordOf, settleEach } from './sets.ts'
import { lockSums } from './sums.ts'
import { type Draft, writeSet } from './write-set.ts'

/**
 * Creates a record. `input`: parsed by `createSchema`. `isLast`: the last step of its transaction. Throws `conflict` if
 * the external_id or the value of a unique custom field is taken, `validation_error` for references and links to
 * records that do not exist and for custom fields that do not match their definitions.
 */
export async function createRecord(
  tx: Tenant,
  kind: KindName,
  input: RecordInput,
  { isLast = false }: { isLast?: boolean } = {},
): Promise<AgxRecord> {
  return recordOf(await createSet(tx, kind, [input], isLast))
}

/** Creates many records with a constant number of statements. Errors as of `createRecord`. */
export const createMany = (tx: Tenant, kind: KindName, inputs: RecordInput[]): Promise<Outcome[]> =>
  inSets(tx, inputs, (tx, set) => createSet(tx, kind, set))

/** Throws as `writeSet` does. */
export async function createSet(
  tx: Tenant,
  kind: KindName,
  inputs: RecordInput[],
  isLast = false,
): Promise<Outcome[]> {
  if (inputs.length === 0) return []
  const definition = kinds[kind]
  const separated = inputs.map(splitLinks)
  const allLinks = separated.flatMap(({ links }) => links)
  const withCurrency = currencyFiller(tx, definition)
  const isPriced = definition.sums !== undefined || hasCopies(definition)
  // Sent in one round trip, in this order.
  const [, rules, values, locked] = await Promise.all([
    lockListed(tx, kind, inputs),
    lockFieldRules(tx, kind),
    isPriced
      ? separated.map(({ fields }) => fields)
      : Promise.all(separated.map(({ fields }) => withCurrency(fields))),
    lockWithLinked(tx, definition, [], allLinks),
  ])
  const holders = await lockSums(
    tx,
    definition,
    separated.map(({ fields, links }) =>
      holderOf(definition, { ...fields, ...filledBy(links, definition, fields) }),
    ),
  )
  const withZone = localTimes(tx, definition)
  const withCountry = localPhones(tx, definition)
  const drafts = await settleEach(tx, separated, async ({ links }, place): Promise<Draft> => {
    checkLinks(links, locked)
    const filled = filledBy(links, definition, values[place]!)
    const linked = { ...values[place], ...filled }
    const priced = isPriced ? await withCurrency(await withPrice(tx, definition, linked, holders)) : linked
    const given = await withCountry(await withZone(priced, rules))
    const write = creation(tx.actor, definition, given, rules)
    return { record: write.record, write, links }
  })
  return writeSet(tx, definition, rules, drafts, isLast)
}

const holderOf = ({ sums }: Kind, fields: RecordInput): unknown => sums && fields[sums.over]

/** The values with what they copy, in the currency of that, or of the record with their sum. */
async function withPrice(
  tx: Tenant,
  kind: Kind,
  fields: RecordInput,
  holders: ReadonlyMap<string, AgxRecord>,
): Promise<RecordInput> {
  const values = await withCopies(tx, kind, fields)
  const holder = holders.get(String(holderOf(kind, values)))
  return { ...values, currency: values.currency ?? holder?.currency ?? null }
}
