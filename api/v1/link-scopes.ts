import { backdatedFields } from '../../db/model/records/backdated.ts'
import { type KindName, referencesOf } from '../../db/model/records/kind.ts'
import { kinds } from '../../db/model/records/kinds/index.ts'
import type { RecordInput } from '../../db/model/records/schemas.ts'
import type { Scope } from '../http/scopes.ts'

/**
 * A link needs write on both kinds, whether its own route, `associations` or a reference field creates it.
 * @returns the scopes that a body needs besides write on its own kind. Null in a new record links nothing.
 */
export function linkScopes(kind: KindName, body: RecordInput, creates = false): Scope[] {
  const linked = (body.associations ?? []) as { object: KindName }[]
  const referred = referencesOf(kinds[kind]).filter(([name]) =>
    creates ? body[name] != null : body[name] !== undefined,
  )
  const targets = [...linked.map(({ object }) => object), ...referred.map(([, { to }]) => to)]
  return [...new Set(targets)].map((target) => `${target}:write` as const)
}

/** The scopes that a body needs besides write on its own kind: those of its links, and the one for times of the past. */
export const writeScopes = (kind: KindName, body: RecordInput, creates = false): Scope[] => [
  ...linkScopes(kind, body, creates),
  ...(backdatedFields(kinds[kind]).some((name) => body[name] != null) ? (['records:backdate'] as const) : []),
]

/** The same scopes as text, for the description of an operation. */
export function linkScopesNote(kind: KindName): string {
  return referencesOf(kinds[kind])
    .filter(([, { to }]) => to !== kind)
    .map(([name, { to }]) => `Setting \`${name}\` also needs the scope \`${to}:write\`.`)
    .join(' ')
}
