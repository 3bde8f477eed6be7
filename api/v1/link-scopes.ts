import { type EntityName, referencesOf } from '../../db/records/model/kind.ts'
import { entities } from '../../db/records/model/kinds/index.ts'
import type { RecordInput } from '../../db/records/model/schemas.ts'
import type { Scope } from '../http/scopes.ts'

/**
 * A link needs write on both of its kinds, whichever way it is made: by its own route, by `associations`, or by a
 * reference field, which links too.
 * @returns what a body needs beyond write on its own kind. Null in a new record unlinks nothing.
 */
export function linkScopes(entity: EntityName, body: RecordInput, creates = false): Scope[] {
  const linked = (body.associations ?? []) as { object: EntityName }[]
  const referred = referencesOf(entities[entity]).filter(([name]) =>
    creates ? body[name] != null : body[name] !== undefined,
  )
  const targets = [...linked.map(({ object }) => object), ...referred.map(([, { to }]) => to)]
  return [...new Set(targets)].map((target) => `${target}:write` as const)
}

/** The same, for the reader of an operation's description. */
export function linkScopesNote(entity: EntityName): string {
  return referencesOf(entities[entity])
    .filter(([, { to }]) => to !== entity)
    .map(([name, { to }]) => `Setting \`${name}\` also needs the scope \`${to}:write\`.`)
    .join(' ')
}
