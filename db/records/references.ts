import { membersAmong } from '../access/members.ts'
import { type Issue, invalid } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type EntityName, type Kind, referencesOf, userFields, withArticle } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import type { AgxRecord } from './model/schemas.ts'

/** A record and, unless they are all of them, the reference fields of it to look at. */
export interface Referring {
  record: AgxRecord
  only?: string[]
}

/**
 * What the references (of `only` these fields) point to is there, and stays until the transaction ends. Throws
 * `validation_error` naming each that points to nothing, to itself or around in a circle, or to no member.
 */
export async function checkReferences(tx: Tenant, kind: Kind, referring: Referring): Promise<void> {
  const issues = (await referenceIssues(tx, kind, [referring])).get(referring.record.id)
  if (issues) throw invalid(issues)
}

/** What `checkReferences` finds wrong, of many records at once, by the record's id. */
export async function referenceIssues(
  tx: Tenant,
  kind: Kind,
  all: Referring[],
): Promise<Map<string, Issue[]>> {
  const found = await userIssues(tx, kind, all)
  const report = (id: string, issue: Issue) => found.set(id, [...(found.get(id) ?? []), issue])
  for (const [name, { to }] of referencesOf(kind)) {
    const referring = all.filter(looksAt(name)).map(({ record }) => record)
    const wanted = referring.map((record) => record[name] as string)
    const held = await heldStill(tx, to, wanted)
    const loc = ['body', name]
    for (const [i, record] of referring.entries()) {
      const id = wanted[i]!
      if (id === record.id)
        report(id, {
          loc,
          msg: `${withArticle(kind.object)} cannot refer to itself`,
          type: 'self_reference',
        })
      else if (!held.has(id))
        report(record.id, {
          loc,
          msg: `there is no ${entities[to].object} with this id`,
          type: 'not_found',
        })
      // Nothing refers to a new record yet.
      else if (record.version > 1 && (await closesCircle(tx, kind, name, record.id, id)))
        report(record.id, {
          loc,
          msg: 'the references would go around in a circle',
          type: 'circular_reference',
        })
    }
  }
  return found
}

async function userIssues(tx: Tenant, kind: Kind, all: Referring[]): Promise<Map<string, Issue[]>> {
  const given = userFields(kind).flatMap((name) =>
    all.filter(looksAt(name)).map(({ record }) => ({ record, name, userId: record[name] as string })),
  )
  const members =
    given.length > 0
      ? await membersAmong(
          tx,
          given.map(({ userId }) => userId),
        )
      : new Set()
  const found = new Map<string, Issue[]>()
  for (const { record, name, userId } of given)
    if (!members.has(userId))
      found.set(record.id, [
        ...(found.get(record.id) ?? []),
        {
          loc: ['body', name],
          msg: 'there is no user with this id in the organization',
          type: 'not_found',
          input: userId,
          hint: 'GET /v1/users lists them',
        },
      ])
  return found
}

const looksAt =
  (name: string) =>
  ({ record, only }: Referring): boolean =>
    record[name] != null && (!only || only.includes(name))

/** Of these records, those that are there; nobody deletes them before this transaction ends. */
export async function heldStill(tx: Tenant, entity: EntityName, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  // In one order, so that two who hold several wait for each other one way only.
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select id from ${entity} where organization_id = ? and id = any(?) and deleted_at is null
     order by id for key share`,
    [tx.organizationId, ids],
  )
  return new Set(rows.map((row) => row.id))
}

/** Whether `holder` is found on the way up from `id`, for references within one kind (a parent). */
export const closesCircle = async (
  tx: Tenant,
  kind: Kind,
  field: string,
  holder: string,
  id: string,
): Promise<boolean> => (await reachableFrom(tx, kind, field, id)).has(holder)

/**
 * What is found on the way up from `id`, itself included; nothing for references to another kind. Until the transaction
 * ends nobody else asks, so that two changes, each harmless alone, do not close a circle together.
 */
export async function reachableFrom(tx: Tenant, kind: Kind, field: string, id: string): Promise<Set<string>> {
  if (kind.fields[field]!.to !== kind.entity) return new Set()
  await tx.trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    `${tx.organizationId} ${kind.entity} ${field}`,
  ])
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `with recursive up (id) as (
       select ?::uuid
       union
       select ${field} from ${kind.entity} join up using (id)
       where organization_id = ? and deleted_at is null and ${field} is not null
     )
     select id from up`,
    [id, tx.organizationId],
  )
  return new Set(rows.map((row) => row.id))
}
