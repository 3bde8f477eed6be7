import { localParts } from '../../workflows/language/time.ts'
import { ORGANIZATION_DEFAULTS } from '../access/organization.ts'
import { type Issue, invalid } from '../model/errors.ts'
import type { Rules } from '../model/records/custom-fields/types.ts'
import type { Filter } from '../model/records/filters.ts'
import { typeOf } from '../model/records/filters.ts'
import type { Kind } from '../model/records/kind.ts'
import { isRelativeDay, withDates } from '../model/records/relative-days.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import { inZone, isLocal, YEARS } from '../model/records/values.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** Times without an offset, and dates as times: they are in the time zone of the organization. */

/**
 * Reads the time zone, at most once and only if a value needs it.
 * @returns a function that gives the local times of a record their offset. Throws `validation_error` for years that
 * PostgreSQL does not have.
 */
export function localTimes(
  tx: Tenant,
  kind: Kind,
): (values: RecordInput, rules: Rules | undefined) => Promise<RecordInput> {
  const native = ['created_at', ...Object.keys(kind.fields)].filter(
    (name) => typeOf(kind, name)?.type === 'datetime',
  )
  let zone: Promise<string> | undefined
  const issues: Issue[] = []
  const stored = async (given: object, names: string[], loc: string[]) => {
    const found: Record<string, unknown> = {}
    for (const name of names) {
      const value = (given as Record<string, unknown>)[name]
      if (typeof value !== 'string' || !isLocal(value)) continue
      zone ??= organizationTimezone(tx)
      found[name] = inZone(value, await zone)
      if (found[name] === undefined)
        issues.push({ loc: [...loc, name], msg: YEARS, type: 'datetime', input: value })
    }
    return found
  }
  return async (values, rules) => {
    const own = await stored(values, native, ['body'])
    const { custom_fields } = values
    const custom =
      rules && custom_fields ? await stored(custom_fields, timesOf(rules), ['body', 'custom_fields']) : {}
    if (issues.length > 0) throw invalid(issues.splice(0))
    const changed = Object.keys(custom).length > 0
    return {
      ...values,
      ...own,
      ...(changed && { custom_fields: { ...(custom_fields as object), ...custom } }),
    }
  }
}

const timesOf = ({ definitions }: Rules): string[] =>
  Object.keys(definitions).filter((name) => definitions[name]!.type === 'datetime')

/** The time zone of a list's filters; undefined if none of them needs it. */
export async function zoneOfFilters(
  tx: Tenant,
  kind: Kind,
  filters: Filter[],
  requested: string | undefined,
): Promise<string | undefined> {
  const isNeeded = filters.some((filter) => {
    const type = typeOfFilter(kind, filter)
    const { values } = filter
    return (type === 'datetime' && values.some(isLocal)) || (isOfDays(type) && values.some(isRelativeDay))
  })
  return isNeeded ? (requested ?? organizationTimezone(tx)) : undefined
}

/** The filters with dates instead of days such as `today`. */
export function withToday(kind: Kind, filters: Filter[], zone = 'UTC'): Filter[] {
  const today = localParts(new Date(), zone).date
  return filters.map((filter) => (isOfDays(typeOfFilter(kind, filter)) ? withDates(filter, today) : filter))
}

const typeOfFilter = (kind: Kind, { field, type }: Filter) => type ?? typeOf(kind, field)?.type

const isOfDays = (type: string | undefined) => type === 'date' || type === 'datetime'

/** The time zone in which the organization works. */
export async function organizationTimezone(tx: Tenant): Promise<string> {
  const row = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<{ timezone: string | null }>(tx.trx.raw("settings ->> 'timezone' as timezone"))
  return row?.timezone ?? ORGANIZATION_DEFAULTS.timezone
}
