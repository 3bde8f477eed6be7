import { membersAmong } from '../access/members.ts'
import type { Issue } from '../model/errors.ts'
import { type Kind, referencesOf, userFields, withArticle } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockExisting } from './lock.ts'

/** A record, and its fields to check; default: all. */
export interface Referring {
  record: AgxRecord
  only?: string[] | undefined
}

/**
 * Checks the references of many records, and locks their targets against deletion. @returns the issues by record id:
 * references to records that do not exist, to the record itself, in a cycle, or to users who are not members.
 */
export async function referenceIssues(
  tx: Tenant,
  kind: Kind,
  all: Referring[],
): Promise<Map<string, Issue[]>> {
  const found = new Map<string, Issue[]>()
  const report = ({ record, name }: Given, issue: Omit<Issue, 'loc'>) =>
    found.set(record.id, [...(found.get(record.id) ?? []), { loc: ['body', name], ...issue }])
  const users = userFields(kind).flatMap((name) => givenIn(all, name))
  const members = await membersAmong(tx, idsOf(users))
  for (const user of users.filter(({ id }) => !members.has(id)))
    report(user, {
      msg: 'there is no user with this id in the organization',
      type: 'not_found',
      input: user.id,
      hint: 'GET /v1/users lists them',
    })
  for (const [name, { to }] of referencesOf(kind)) {
    const references = givenIn(all, name)
    const existing = await lockExisting(tx, to, idsOf(references))
    for (const one of references) {
      const { record, id } = one
      if (id === record.id)
        report(one, { msg: `${withArticle(kind.object)} cannot refer to itself`, type: 'self_reference' })
      else if (!existing.has(id))
        report(one, { msg: `there is no ${kinds[to].object} with this id`, type: 'not_found' })
      // Nothing refers to a new record.
      else if (record.version > 1 && (await closesCycle(tx, kind, name, record.id, id)))
        report(one, { msg: 'the references would form a cycle', type: 'circular_reference' })
    }
  }
  return found
}

interface Given {
  record: AgxRecord
  name: string
  id: string
}

const idsOf = (given: Given[]) => given.map(({ id }) => id)

/** The ids in one field of the records that check it. */
const givenIn = (all: Referring[], name: string): Given[] =>
  all.flatMap(({ record, only }) =>
    record[name] != null && (!only || only.includes(name))
      ? [{ record, name, id: record[name] as string }]
      : [],
  )

/** Whether a reference of `holder` to `id`, of the same kind (a parent), would close a cycle. */
export const closesCycle = async (
  tx: Tenant,
  kind: Kind,
  field: string,
  holder: string,
  id: string,
): Promise<boolean> => (await reachableFrom(tx, kind, field, id)).has(holder)

/**
 * `id` and the records that it refers to, directly or indirectly; empty for references to another kind. Serialises its
 * callers until their transactions end, so that two concurrent changes cannot close a cycle together.
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
