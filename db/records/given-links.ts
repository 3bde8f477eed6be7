import { type Issue, invalid } from '../model/errors.ts'
import { type Kind, type KindName, referencesOf } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { End, GivenLink } from './links.ts'
import { type LockedEnds, lockEnds } from './lock.ts'
import { isSumOf } from './sums.ts'

/** The `associations` of a create or an upsert: links that are created with the record. */

/** Separates the associations of an input from its fields. */
export function splitLinks({ associations, ...fields }: RecordInput): {
  links: GivenLink[]
  fields: RecordInput
} {
  const links = (associations ?? []) as { object: KindName; id: string; label?: string | null }[]
  return { links: links.map(({ object: kind, ...link }) => ({ entity: kind, ...link })), fields }
}

/** Locks the records `ids` of a kind, and the records to link with them. */
export function lockWithLinked(
  tx: Tenant,
  kind: Kind,
  ids: string[],
  links: GivenLink[],
): Promise<LockedEnds> {
  // A link fills the reference field of its other end, or changes its sum.
  const changes = ({ entity }: GivenLink) =>
    referencesOf(kinds[entity], kind.entity).length > 0 || isSumOf(kinds[entity], kind.entity)
  const own = ids.map((id) => ({ entity: kind.entity, id }))
  return lockEnds(
    tx,
    [...own, ...links.filter(changes)],
    links.filter((link) => !changes(link)),
  )
}

/** Throws `validation_error` with the links to `self` or to records that do not exist. */
export function checkLinks(links: GivenLink[], locked: LockedEnds, self?: End): void {
  const issues = links.flatMap((link, i): Issue[] => {
    const loc = ['body', 'associations', i, 'id']
    if (link.entity === self?.entity && link.id === self.id)
      return [{ loc, msg: 'a record cannot be linked to itself', type: 'self_reference' }]
    if (locked.has(link)) return []
    const msg = `there is no ${kinds[link.entity].object} with this id`
    return [{ loc, msg, type: 'not_found', input: link.id }]
  })
  if (issues.length > 0) throw invalid(issues)
}

/** The reference fields that the links fill: each null field by the first link to its kind. */
export function filledBy(
  links: GivenLink[],
  kind: Kind,
  values: Record<string, unknown>,
): Record<string, string> {
  const filled: Record<string, string> = {}
  for (const { entity, id } of links)
    for (const [name] of referencesOf(kind, entity)) if (values[name] == null) filled[name] ??= id
  return filled
}
