import { IMPORT_ID, kindReadBy } from '../../../workflows/shared/related-filters.ts'
import { customName, type Filter, typeOf } from './filters.ts'
import type { Kind } from './kind.ts'
import { isRelativeDay } from './relative-days.ts'
import { isLocal } from './values.ts'
import { comparedBy } from './worth.ts'

/**
 * Whether records begin or cease to match without a change of their own: with the time, with other records, or with
 * settings of the organization such as its time zone, its exchange rates and the types of its custom fields.
 */
export const drifts = (
  kind: Kind,
  { filters, match }: { filters: readonly Filter[]; match: 'all' | 'any' },
): boolean =>
  filters.some((filter) => {
    const { field, values } = filter
    return (
      kindReadBy(field) !== undefined ||
      field === IMPORT_ID ||
      customName(field) !== undefined ||
      values.some(isRelativeDay) ||
      (typeOf(kind, field)?.type === 'datetime' && values.some(isLocal)) ||
      comparedBy(kind, filter, { filters, match }) !== undefined
    )
  })
