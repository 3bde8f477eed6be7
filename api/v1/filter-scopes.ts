import type { Filter } from '../../db/model/records/filters.ts'
import { kindReadBy } from '../../workflows/shared/related-filters.ts'
import type { Scope } from '../http/scopes.ts'

/** The scopes that the filters of a list need besides that of its kind: some read other records. */
export const filterScopes = ({ filters }: { filters: Filter[] }): Scope[] =>
  filters.flatMap(({ field }): Scope[] => {
    const kind = kindReadBy(field)
    return kind ? [`${kind}:read`] : []
  })
