import { type Issue, invalid } from '../errors.ts'
import type { Tenant } from '../tenancy.ts'
import type { EntityName, Kind } from './kind.ts'
import { entities } from './kinds/index.ts'
import { type End, upsertLink } from './links.ts'
import { fillReference } from './primaries.ts'
import { heldStill, referencesOf } from './references.ts'

/** The `associations` of a create: records that the new one is linked with from its first version on. */

export interface BornLink {
  object: EntityName
  id: string
  label?: string | null
}

/** Throws `validation_error` for those that are not there; the others stay until the transaction ends. */
export async function requireLinked(tx: Tenant, links: BornLink[]): Promise<void> {
  const held = new Map<EntityName, Set<string>>()
  for (const object of new Set(links.map((link) => link.object)))
    held.set(object, await heldStill(tx, object, idsOf(links, object)))
  const issues: Issue[] = links.flatMap(({ object, id }, i) =>
    held.get(object)!.has(id)
      ? []
      : {
          loc: ['body', 'associations', i, 'id'],
          msg: `there is no ${entities[object].object} with this id`,
          type: 'not_found',
          input: id,
        },
  )
  if (issues.length > 0) throw invalid(issues)
}

/** The reference fields that the links fill, as linking fills them: where they are null, the first one wins. */
export function filledBy(
  links: BornLink[],
  kind: Kind,
  values: Record<string, unknown>,
): Record<string, string> {
  const filled: Record<string, string> = {}
  for (const { object, id } of links)
    for (const [name] of referencesOf(kind, object)) if (values[name] == null) filled[name] ??= id
  return filled
}

/** Makes the links, and fills the references to the new record at their other ends. */
export async function makeLinks(tx: Tenant, from: End, links: BornLink[]): Promise<void> {
  for (const { object, id, label } of links) {
    const to = { entity: object, id }
    await upsertLink(tx, from, to, label == null ? {} : { label })
    if (object !== from.entity) await fillReference(tx, to, from)
  }
}

const idsOf = (links: BornLink[], object: EntityName) =>
  links.filter((link) => link.object === object).map(({ id }) => id)
