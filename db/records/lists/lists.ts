import { v7 as uuidv7 } from 'uuid'
import { fieldsOf, recorded } from '../../access/audit-log.ts'
import { limitOf, lockSubscription } from '../../access/plans.ts'
import { type IdPage, pageById } from '../../lists/id-list.ts'
import type { Actor } from '../../model/actor.ts'
import { AppError, conflict, notFound } from '../../model/errors.ts'
import type { Page } from '../../model/lists/page.ts'
import { requireVersion } from '../../model/lists/version.ts'
import { drifts } from '../../model/records/drifts.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kinds } from '../../model/records/kinds/index.ts'
import { ofCaller } from '../../model/records/of-caller.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { checkSelection, type Selection } from '../selection.ts'

/**
 * Lists of records of one kind. The members of a static list are added and removed (`members.ts`); those of a filter list
 * are the records that match: workers keep them in the same table (`changes.ts`, `passes.ts`), so that an entry or a
 * leaving raises one event.
 */
export const LIST_TYPES = ['static', 'filter'] as const
export type ListType = (typeof LIST_TYPES)[number]

export interface List {
  id: string
  entity: KindName
  name: string
  description: string | null
  type: ListType
  /** The parameters of a filter list: those of the list of records, as sent. */
  query: Record<string, string | string[]> | null
  /** The parsed `query`. */
  selection: Selection | null
  member_count: number
  /** When it had its members: the end of the first comparison of a filter list with all records; null before. */
  filled_at: Date | null
  /** Why records could not be compared with the filter. */
  problem: string | null
  version: number
  created_by: Actor
  updated_by: Actor
  created_at: Date
  updated_at: Date
}

/** The filter of a list: as sent, and as parsed. */
export interface ListFilter {
  query: Record<string, string | string[]>
  selection: Selection
}

export interface NewList {
  entity: KindName
  name: string
  description: string | null
  /** Absent: a static list. */
  filter?: ListFilter | undefined
}

export interface ListPatch {
  name?: string | undefined
  description?: string | null | undefined
  filter?: ListFilter | undefined
}

/** Lists of an organization; those by a filter have also a limit of the plan. */
export const MAX_LISTS = 1_000

const COLUMNS = [
  'id',
  'entity',
  'name',
  'description',
  'type',
  'query',
  'selection',
  'member_count',
  'filled_at',
  'problem',
  'version',
  'created_by',
  'updated_by',
  'created_at',
  'updated_at',
]

const lists = (tx: Tenant) =>
  tx.trx('lists').where({ organization_id: tx.organizationId }).whereNull('deleted_at')

/** The lists of these kinds, newest first. */
export function listLists(tx: Tenant, of: readonly KindName[], page: IdPage): Promise<Page<List>> {
  return pageById(tx, lists(tx).whereIn('entity', of).select(COLUMNS), page, { of: ['lists', of] })
}

/** Throws `not_found`. */
export async function getList(tx: Tenant, id: string): Promise<List> {
  const row = await lists(tx).where({ id }).first<List | undefined>(COLUMNS)
  if (!row) throw notFound('list')
  return row
}

/** Throws `validation_error` for a filter, `conflict` above `MAX_LISTS`, `plan_limit`. */
export async function createList(tx: Tenant, { entity, name, description, filter }: NewList): Promise<List> {
  const given = filter
    ? await filterColumns(tx, entity, filter)
    : { type: 'static' as const, filled_at: tx.trx.fn.now() }
  await requireFree(tx, given.type)
  const actor = JSON.stringify(tx.actor)
  const [row] = await tx
    .trx('lists')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      entity,
      name,
      description,
      ...given,
      created_by: actor,
      updated_by: actor,
    })
    .returning<List[]>(COLUMNS)
  return recorded(tx, 'list.created', row!, { entity, type: row!.type })
}

/**
 * Changes a list. One with another filter is compared with all records anew. Throws `not_found`, `version_conflict`,
 * `validation_error`.
 */
export async function updateList(
  tx: Tenant,
  id: string,
  { filter, ...patch }: ListPatch,
  ifVersion?: readonly number[],
): Promise<List> {
  const before = await lockList(tx, id, ifVersion)
  const given = filter && (await filterColumns(tx, before.entity, filter))
  const [row] = await lists(tx)
    .where({ id })
    .update({
      ...patch,
      ...given,
      version: before.version + 1,
      updated_by: JSON.stringify(tx.actor),
      updated_at: tx.trx.fn.now(),
    })
    .returning<List[]>(COLUMNS)
  return recorded(tx, 'list.updated', row!, fieldsOf({ ...patch, query: filter }))
}

/** Deletes a list, without events; workers remove its members. Throws `not_found`, `version_conflict`. */
export async function deleteList(tx: Tenant, id: string, ifVersion?: readonly number[]): Promise<void> {
  const row = await lockList(tx, id, ifVersion)
  await lists(tx).where({ id }).update({ deleted_at: tx.trx.fn.now(), due_at: tx.trx.fn.now() })
  tx.wake('agx_lists')
  await recorded(tx, 'list.deleted', row)
}

/** Locks a list, and with it its members. Throws `not_found`, `version_conflict`. */
export async function lockList(tx: Tenant, id: string, ifVersion?: readonly number[]): Promise<List> {
  const row = await lists(tx).where({ id }).forNoKeyUpdate().first<List | undefined>(COLUMNS)
  if (!row) throw notFound('list')
  requireVersion('list', row.version, ifVersion)
  return row
}

/** The columns of a filter, for a list that is compared with all records next. Throws `validation_error`. */
async function filterColumns(tx: Tenant, entity: KindName, { query, selection }: ListFilter) {
  await checkSelection(tx, entity, selection)
  const kind = kinds[entity]
  // Workers compare: `me` is whoever saves the list.
  const kept: Selection = { ...selection, filters: ofCaller(tx.actor, kind, selection.filters) }
  tx.wake('agx_lists')
  return {
    type: 'filter' as const,
    query: JSON.stringify(query),
    selection: JSON.stringify(kept),
    drifts: drifts(kind, kept),
    due_at: tx.trx.fn.now(),
    after_id: null,
    filled_at: null,
    problem: null,
  }
}

async function requireFree(tx: Tenant, type: ListType): Promise<void> {
  const subscription = await lockSubscription(tx)
  const [counts] = await lists(tx).select<{ all: number; filters: number }[]>(
    tx.trx.raw(`count(*)::integer as "all", (count(*) filter (where type = 'filter'))::integer as filters`),
  )
  if (counts!.all >= MAX_LISTS)
    throw conflict(`the organization already has ${MAX_LISTS} lists`, { hint: 'delete an unused list' })
  const allowed = limitOf(subscription, 'filter_lists')
  if (type === 'filter' && counts!.filters >= allowed)
    throw new AppError('plan_limit', `the plan allows ${allowed} lists by a filter, and all are in use`, {
      hint: 'delete one, or change the plan',
    })
}
