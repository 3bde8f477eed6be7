import { v7 as uuidv7 } from 'uuid'
import { fieldsOf, recorded } from '../access/audit-log.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import { requireVersion } from '../model/lists/version.ts'
import type { KindName } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** A saved list: the parameters of a list, and its columns. A view that is not shared is visible to its author only. */
export interface View {
  id: string
  entity: KindName
  name: string
  /** The parameters of the list, as sent. */
  query: Record<string, string | string[]>
  fields: string[] | null
  shared: boolean
  version: number
  created_by: Actor
  updated_by: Actor
  created_at: Date
  updated_at: Date
}

export type ViewValues = Pick<View, 'name' | 'query' | 'fields' | 'shared'>
export type ViewPatch = { [K in keyof ViewValues]?: ViewValues[K] | undefined }

/** Views of one author. */
export const MAX_VIEWS = 500

const COLUMNS = [
  'id',
  'entity',
  'name',
  'query',
  'fields',
  'shared',
  'version',
  'created_by',
  'updated_by',
  'created_at',
  'updated_at',
]

const views = (tx: Tenant) => tx.trx('views').where({ organization_id: tx.organizationId })

const IS_OWN = 'created_by = cast(? as jsonb)'
const visible = (tx: Tenant) => views(tx).whereRaw(`(shared or ${IS_OWN})`, [JSON.stringify(tx.actor)])

/** The views of these kinds that the caller sees, newest first. */
export function listViews(tx: Tenant, kinds: readonly KindName[], page: IdPage): Promise<Page<View>> {
  const rows = visible(tx).whereIn('entity', kinds).select(COLUMNS)
  return pageById(tx, rows, page, { of: ['views', kinds, tx.actor] })
}

/** Throws `not_found`, also for another author's view that is not shared. */
export async function getView(tx: Tenant, id: string): Promise<View> {
  const row = await visible(tx).where({ id }).first<View | undefined>(COLUMNS)
  if (!row) throw notFound('view')
  return row
}

/** Throws `conflict` above `MAX_VIEWS`. */
export async function createView(tx: Tenant, entity: KindName, values: ViewValues): Promise<View> {
  const actor = JSON.stringify(tx.actor)
  // Serialises the creations of an author, so that they cannot exceed the limit together.
  await tx.trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    `${tx.organizationId} views ${tx.actor.id}`,
  ])
  const [own] = await views(tx).whereRaw(IS_OWN, [actor]).count<{ count: number }[]>()
  if (own!.count >= MAX_VIEWS)
    throw conflict(`the author already has ${MAX_VIEWS} views`, { hint: 'delete an unused view' })
  const [row] = await tx
    .trx('views')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      entity,
      ...columnsOf(values),
      created_by: actor,
      updated_by: actor,
    })
    .returning<View[]>(COLUMNS)
  return recorded(tx, 'view.created', row!, { entity })
}

/**
 * Changes a view; everybody who may write its kind changes a shared one. Throws `not_found`, `version_conflict`;
 * `conflict` if another than its author would make it private.
 */
export async function updateView(
  tx: Tenant,
  id: string,
  patch: ViewPatch,
  ifVersion?: readonly number[],
): Promise<View> {
  const before = await lockView(tx, id, ifVersion)
  const { type, id: author } = before.created_by
  if (patch.shared === false && before.shared && (type !== tx.actor.type || author !== tx.actor.id))
    throw conflict('only its author can make a shared view private', { param: 'shared' })
  const [row] = await views(tx)
    .where({ id })
    .update({
      ...columnsOf(patch),
      version: before.version + 1,
      updated_by: JSON.stringify(tx.actor),
      updated_at: tx.trx.fn.now(),
    })
    .returning<View[]>(COLUMNS)
  return recorded(tx, 'view.updated', row!, fieldsOf(patch))
}

/** Throws `not_found`, `version_conflict`. */
export async function deleteView(tx: Tenant, id: string, ifVersion?: readonly number[]): Promise<void> {
  const row = await lockView(tx, id, ifVersion)
  await views(tx).where({ id }).delete()
  await recorded(tx, 'view.deleted', row)
}

async function lockView(tx: Tenant, id: string, ifVersion: readonly number[] | undefined): Promise<View> {
  const row = await visible(tx).where({ id }).forUpdate().first<View | undefined>(COLUMNS)
  if (!row) throw notFound('view')
  requireVersion('view', row.version, ifVersion)
  return row
}

const columnsOf = ({ name, query, fields, shared }: ViewPatch) => ({
  ...(name !== undefined && { name }),
  ...(query !== undefined && { query: JSON.stringify(query) }),
  ...(fields !== undefined && { fields: fields && JSON.stringify(fields) }),
  ...(shared !== undefined && { shared }),
})
