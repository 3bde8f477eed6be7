import { type Issue, invalid } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { holdRules } from './custom-fields/rules.ts'
import { type End, upsertLink } from './links.ts'
import { recordNotFound } from './merged.ts'
import { type EntityName, type Kind, referencesOf } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import type { AgxRecord, RecordInput } from './model/schemas.ts'
import { fillReference, referringFirst } from './primaries.ts'
import { closesCircle, heldStill } from './references.ts'
import { lockRecords, type UpdateOptions, updateRecord } from './update.ts'

/** The `associations` of a create or an upsert: records that it is linked with in the same change. */

export interface GivenLink {
  object: EntityName
  id: string
  label?: string | null
}

/** The associations of an input, apart from its fields. */
export function splitLinks({ associations, ...fields }: RecordInput): {
  links: GivenLink[]
  fields: RecordInput
} {
  return { links: (associations ?? []) as GivenLink[], fields }
}

/** Throws `validation_error` for those that are not there; the others stay until the transaction ends. */
export async function requireLinked(tx: Tenant, links: GivenLink[]): Promise<void> {
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
  links: GivenLink[],
  kind: Kind,
  values: Record<string, unknown>,
): Record<string, string> {
  const filled: Record<string, string> = {}
  for (const { object, id } of links)
    for (const [name] of referencesOf(kind, object)) if (values[name] == null) filled[name] ??= id
  return filled
}

/** Makes the links, and fills the references to the record at their other ends. One that is there keeps its properties. */
export async function makeLinks(tx: Tenant, from: End, links: GivenLink[]): Promise<void> {
  for (const { object, id, label } of links) {
    const to = { entity: object, id }
    await upsertLink(tx, from, to, label == null ? {} : { label }, ['label'])
    if (object !== from.entity) await fillReference(tx, to, from)
  }
}

/**
 * An update whose `patch` may have associations too: the links that are not there yet are made with it, and fill what is
 * null as those of a create do. Throws what `updateRecord` and `requireLinked` do, `validation_error` for a link to itself.
 */
export async function updateAndLink(
  tx: Tenant,
  entity: EntityName,
  id: string,
  patch: RecordInput,
  options: UpdateOptions = {},
): Promise<AgxRecord> {
  const kind = entities[entity]
  const { links, fields } = splitLinks(patch)
  if (links.length === 0) return updateRecord(tx, entity, id, fields, options)
  refuseSelf({ entity, id }, links)
  // Rules before records, as everywhere.
  await holdRules(tx, entity)
  const before = await holdEnds(tx, { entity, id }, links)
  const filled = filledBy(links, kind, { ...before, ...fields })
  for (const [name, other] of Object.entries(filled))
    if (await closesCircle(tx, kind, name, id, other)) delete filled[name]
  const record = await updateRecord(tx, entity, id, { ...fields, ...filled }, options)
  await makeLinks(tx, { entity, id }, links)
  return record
}

function refuseSelf(from: End, links: GivenLink[]): void {
  const issues: Issue[] = links.flatMap(({ object, id }, i) =>
    object === from.entity && id === from.id
      ? {
          loc: ['body', 'associations', i, 'id'],
          msg: 'a record cannot be linked to itself',
          type: 'self_reference',
        }
      : [],
  )
  if (issues.length > 0) throw invalid(issues)
}

/** Holds the record and what it will be linked with, in the order of updates: what refers before what it refers to. */
async function holdEnds(tx: Tenant, from: End, links: GivenLink[]): Promise<AgxRecord> {
  for (const entity of referringFirst) {
    const refers = entity !== from.entity && referencesOf(entities[entity], from.entity).length > 0
    const ids = idsOf(links, entity)
    if (refers && ids.length > 0) await lockRecords(tx, entity, ids)
  }
  const own = await lockRecords(tx, from.entity, [from.id, ...idsOf(links, from.entity)])
  const record = own.get(from.id)
  if (!record) throw await recordNotFound(tx, entities[from.entity], from.id)
  await requireLinked(tx, links)
  return record
}

const idsOf = (links: GivenLink[], object: EntityName) =>
  links.filter((link) => link.object === object).map(({ id }) => id)
