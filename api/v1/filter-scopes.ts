import { expansionsOf } from '../../db/model/records/expansions.ts'
import type { Filter } from '../../db/model/records/filters.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kinds } from '../../db/model/records/kinds/index.ts'
import { kindReadBy } from '../../workflows/shared/related-filters.ts'
import type { Scope } from '../http/scopes.ts'

/** The scopes that the filters of a list need besides that of its kind: some read other records. */
export const filterScopes = ({ filters }: { filters: Filter[] }): Scope[] =>
  filters.flatMap(({ field }): Scope[] => {
    const kind = kindReadBy(field)
    return kind ? [`${kind}:read`] : []
  })

/** The scopes that the expansions of records need: their own, as users have none. */
export function expandScopes(kind: KindName, names: string[] = []): Scope[] {
  const known = expansionsOf(kinds[kind])
  return names.flatMap((name): Scope[] => {
    const expansion = known.get(name)!
    return expansion.is === 'user' ? [] : [`${expansion.of}:read`]
  })
}
