import { invalid } from '../model/errors.ts'
import type { Kind, KindName, Sums } from '../model/records/kind.ts'
import { kindNames, kinds } from '../model/records/kinds/index.ts'
import { change, type Write } from '../model/records/prepare.ts'
import type { AgxRecord, RecordInput } from '../model/records/schemas.ts'
import { fitsMoney, MONEY_DIGITS, moneyText } from '../model/records/values.ts'
import { OF_ORGANIZATION, type Tenant } from '../postgres/tenancy.ts'
import { lockRecords } from './lock.ts'

/**
 * Fields that are the sum of other records: the amount of a deal is that of its line items (`KindDefinition.sums`).
 * Every write of a record that is summed locks the record with the sum, and adds up again in the same transaction: of
 * two at the same time, the second waits for the first, and then sees what it has written.
 */

/** A kind whose records are summed, with the kind of the sums. */
interface Summing extends Sums {
  kind: Kind
  into_kind: Kind
}

const SUMMING: Summing[] = kindNames.flatMap((name) => {
  const kind = kinds[name]
  return kind.sums ? [{ ...kind.sums, kind, into_kind: kinds[kind.fields[kind.sums.over]!.to!] }] : []
})

const summingOf = (kind: Kind): Summing | undefined => SUMMING.find((one) => one.kind.entity === kind.entity)
const summedInto = (kind: Kind): Summing[] =>
  SUMMING.filter(({ into_kind }) => into_kind.entity === kind.entity)

/** Whether a record of `kind` has a field that is a sum of records of `other`. */
export const isSumOf = (kind: Kind, other: KindName): boolean =>
  summedInto(kind).some((one) => one.kind.entity === other)

/** Locks the records whose sums a write changes, in the order of lock.ts: before the targets of references. */
export async function lockSums(tx: Tenant, kind: Kind, ids: unknown[]): Promise<Map<string, AgxRecord>> {
  const summing = summingOf(kind)
  const known = [...new Set(ids.filter((id): id is string => typeof id === 'string'))]
  return summing ? lockRecords(tx, summing.into_kind.entity, known) : new Map()
}

/**
 * The sums that writes change, each with the records' currency as its own. With the end of the last record that is
 * summed, the value from before the first one comes back, null without one. @returns the writes of the records with
 * these sums. `except`: those that are deleted or merged next. Throws `validation_error` if
 * the records of a sum have several currencies, or it has too many digits.
 */
export async function changedSums(
  tx: Tenant,
  kind: Kind,
  writes: Write[],
  except: readonly string[] = [],
): Promise<{ kind: Kind; writes: Write[] } | undefined> {
  const summing = summingOf(kind)
  if (!summing) return undefined
  const { over, field, into, into_kind } = summing
  const ids = writes.flatMap((write) => holdersOf(summing, write)).filter((id) => !except.includes(id))
  const holders = await lockSums(tx, kind, ids)
  if (holders.size === 0) return undefined
  const { rows } = await tx.trx.raw<{
    rows: { id: string; sum: string; currencies: string[]; count: number }[]
  }>(
    `select ${over} as id, sum(${field})::text as sum, array_agg(distinct currency order by currency) as currencies,
       count(*)::integer as count
     from ${kind.entity}
     where ${OF_ORGANIZATION} and ${over} = any(array(select unnest(?::uuid[]))) and deleted_at is null
     group by ${over}`,
    [tx.organizationId, [...holders.keys()]],
  )
  const found = new Map(rows.map((row) => [row.id, row]))
  const kept = await keepUnsummed(tx, summing, {
    first: rows.flatMap(({ id, count }) => (count === entering(summing, writes, id) ? id : [])),
    none: [...holders.keys()].filter((id) => !found.has(id)),
  })
  const sums = [...holders.values()].flatMap((holder) => {
    const { sum, currencies } = found.get(holder.id) ?? { sum: null, currencies: [] }
    if (currencies.length > 1) throw severalCurrencies(summing, holder, currencies)
    const patch: RecordInput =
      sum === null
        ? (kept.get(holder.id) ?? { [into]: null })
        : { [into]: moneyText(sum), currency: currencies[0] }
    if (sum !== null && !fitsMoney(moneyText(sum))) throw tooLarge(summing)
    return change(tx.actor, into_kind, holder, patch, { ...holder, ...patch }) ?? []
  })
  return { kind: into_kind, writes: sums }
}

/** How many records of `writes` are summed in `id` now, and were not before. */
const entering = ({ over }: Summing, writes: Write[], id: string): number =>
  writes.filter(
    ({ action, record, previous }) =>
      record[over] === id &&
      (action === 'created' || action === 'restored' || (previous && over in previous)),
  ).length

/**
 * Keeps the own values of the records that have their `first` records to sum, null too, unless they are kept already, as
 * of a restored one, whose value is a sum. @returns those of the records with `none` left, which are not kept any longer.
 */
async function keepUnsummed(
  tx: Tenant,
  { into, into_kind }: Summing,
  { first, none }: { first: string[]; none: string[] },
): Promise<Map<string, RecordInput>> {
  const { entity } = into_kind
  if (first.length > 0)
    await tx.trx.raw(
      `update ${entity} set unsummed = jsonb_build_object('value', ${into}::text, 'currency', currency)
       where ${OF_ORGANIZATION} and id = any(?) and unsummed is null`,
      [tx.organizationId, first] as never,
    )
  if (none.length === 0) return new Map()
  const { rows } = await tx.trx.raw<{ rows: { id: string; value: string | null; currency: string }[] }>(
    `update ${entity} d set unsummed = null from (
       select id, unsummed from ${entity}
       where ${OF_ORGANIZATION} and id = any(?) and unsummed is not null for update) kept
     where d.${OF_ORGANIZATION} and d.id = kept.id
     returning d.id, kept.unsummed ->> 'value' as value, kept.unsummed ->> 'currency' as currency`,
    [tx.organizationId, none, tx.organizationId] as never,
  )
  // Without a value, the currency stays that of the sum.
  return new Map(
    rows.map(({ id, value, currency }) => [
      id,
      value === null ? { [into]: null } : { [into]: moneyText(value), currency },
    ]),
  )
}

/** The records with a sum that a write changes: of the record as it is, and as it was. */
function holdersOf({ over, field }: Summing, { action, record, previous }: Write): string[] {
  const changes = !previous || [over, field, 'currency'].some((name) => name in previous)
  if (action === 'updated' && !changes) return []
  return [record[over], previous?.[over]].filter((id): id is string => typeof id === 'string')
}

const severalCurrencies = ({ kind, into_kind }: Summing, { currency }: AgxRecord, found: string[]) =>
  invalid([
    {
      loc: ['body', 'currency'],
      msg: `the ${plural(kind)} of a ${into_kind.object} have one currency, and here would have ${found.join(' and ')}`,
      type: 'invalid_value',
      hint: `give the currency of the ${into_kind.object}${currency ? `, ${currency},` : ''} and the price in it`,
    },
  ])

const tooLarge = ({ kind, into_kind, into }: Summing) =>
  invalid([
    {
      loc: ['body', 'unit_price'],
      msg: `the ${into} of the ${into_kind.object}, the sum of its ${plural(kind)}, would have more than ${MONEY_DIGITS} digits before the point`,
      type: 'invalid_value',
    },
  ])

const plural = ({ entity }: Kind) => entity.replace('_', ' ')

/** The locked records that have a sum of others. */
export async function withSums(tx: Tenant, kind: Kind, ids: string[]): Promise<Set<string>> {
  const held = new Set<string>()
  if (ids.length === 0) return held
  for (const { kind: of, over } of summedInto(kind)) {
    const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
      `select distinct ${over} as id from ${of.entity}
       where ${OF_ORGANIZATION} and ${over} = any(array(select unnest(?::uuid[]))) and deleted_at is null`,
      [tx.organizationId, ids],
    )
    for (const { id } of rows) held.add(id)
  }
  return held
}

/** The fields of a kind that are sums, and the currency that they bring. */
const summedFields = (kind: Kind): string[] => summedInto(kind).flatMap(({ into }) => [into, 'currency'])

/** Whether values have a field that may be a sum. */
export const mentionsSum = (kind: Kind, values: RecordInput): boolean =>
  summedFields(kind).some((name) => values[name] !== undefined)

/** Throws `validation_error` if a patch would change the sum of a record that `withSums` found. */
export function refuseSums(kind: Kind, before: AgxRecord, patch: RecordInput): void {
  const issues = summedInto(kind).flatMap(({ kind: of, into }) =>
    [into, 'currency']
      .filter((name) => patch[name] !== undefined && patch[name] !== before[name])
      .map((name) => ({
        loc: ['body', name],
        msg: `is that of the ${plural(of)}${name === into ? ', their sum' : ''}`,
        type: 'read_only',
        hint: `change or delete the ${plural(of)} of the ${kind.object}`,
      })),
  )
  if (issues.length > 0) throw invalid(issues)
}

/** Values without those that are sums. */
export const withoutSums = (kind: Kind, values: RecordInput): RecordInput =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !summedFields(kind).includes(name)))
