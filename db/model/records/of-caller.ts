import type { Actor } from '../actor.ts'
import { type Issue, invalid } from '../errors.ts'
import { atItsKind, type Filter, ME, typeOf } from './filters.ts'
import type { Kind } from './kind.ts'

/**
 * The filters with the id of the caller instead of `me`. Throws `validation_error` unless the caller is a person: an API
 * key or a run owns no records.
 */
export function ofCaller({ type, id }: Actor, kind: Kind, filters: Filter[]): Filter[] {
  const issues: Issue[] = []
  const read = filters.map((filter) => {
    if (!filter.values.includes(ME) || !isOfUser(kind, filter)) return filter
    if (type === 'user' && id !== null)
      return { ...filter, values: filter.values.map((value) => (value === ME ? id : value)) }
    const { field, operator } = filter
    issues.push({
      loc: ['query', operator === 'eq' ? field : `${field}[${operator}]`],
      msg: 'me is the signed-in user, and the caller is not a user',
      type: 'invalid_value',
      input: ME,
      hint: `write the id of the user, from GET /v1/users: ${field}=<id>`,
    })
    return filter
  })
  if (issues.length > 0) throw invalid(issues)
  return read
}

function isOfUser(kind: Kind, filter: Filter): boolean {
  const at = atItsKind(kind, filter)
  return typeOf(at.kind, at.filter.field)?.type === 'user'
}
