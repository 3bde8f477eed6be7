import { type Issue, invalid } from '../errors.ts'
import { membersAmong } from '../members.ts'
import type { Tenant } from '../tenancy.ts'
import { type EntityName, type Field, type Kind, withArticle } from './kind.ts'
import { entities } from './kinds/index.ts'
import type { AgxRecord } from './schemas.ts'

type ReferenceField = Field & { to: EntityName }

/** The fields of a kind that point to another record, optionally only those that point to one kind. */
export const referencesOf = (kind: Kind, to?: EntityName): [string, ReferenceField][] =>
  Object.entries(kind.fields).filter(
    (entry): entry is [string, ReferenceField] =>
      entry[1].to !== undefined && (to === undefined || entry[1].to === to),
  )

/** The fields of a kind that name a user of the organization. */
export const userFields = (kind: Kind): string[] => [
  'owner_id',
  ...Object.keys(kind.fields).filter((name) => kind.fields[name]!.type === 'user'),
]

/**
 * What the references (of `only` these fields) point to is there, and stays until the transaction ends. Throws
 * `validation_error` naming each that points to nothing, to itself or around in a circle, or to no member.
 */
export async function checkReferences(
  tx: Tenant,
  kind: Kind,
  record: AgxRecord,
  only?: string[],
): Promise<void> {
  const issues = await checkUsers(tx, kind, record, only)
  for (const [name, { to }] of referencesOf(kind)) {
    const id = record[name]
    if (typeof id !== 'string' || (only && !only.includes(name))) continue
    const loc = ['body', name]
    if (id === record.id)
      issues.push({ loc, msg: `${withArticle(kind.object)} cannot be its own`, type: 'self_reference' })
    else if (!(await holdsStill(tx, to, id)))
      issues.push({ loc, msg: `there is no ${entities[to].object} with this id`, type: 'not_found' })
    else if (await closesCircle(tx, kind, name, record.id, id))
      issues.push({ loc, msg: 'the references would go around in a circle', type: 'circular_reference' })
  }
  if (issues.length > 0) throw invalid(issues)
}

async function checkUsers(tx: Tenant, kind: Kind, record: AgxRecord, only?: string[]): Promise<Issue[]> {
  const given = userFields(kind).filter((name) => record[name] != null && (!only || only.includes(name)))
  if (given.length === 0) return []
  const members = await membersAmong(
    tx,
    given.map((name) => record[name] as string),
  )
  return given
    .filter((name) => !members.has(record[name] as string))
    .map((name) => ({
      loc: ['body', name],
      msg: 'there is no user with this id in the organization',
      type: 'not_found',
      input: record[name],
      hint: 'GET /v1/users lists them',
    }))
}

/** Whether the record is there; if so, nobody deletes it before this transaction ends. */
export async function holdsStill(tx: Tenant, entity: EntityName, id: string): Promise<boolean> {
  const { rows } = await tx.trx.raw<{ rows: unknown[] }>(
    `select 1 from ${entity} where organization_id = ? and id = ? and deleted_at is null for key share`,
    [tx.organizationId, id],
  )
  return rows.length > 0
}

/** Whether `holder` is found on the way up from `id`, for references within one kind (a parent). */
export async function closesCircle(
  tx: Tenant,
  kind: Kind,
  field: string,
  holder: string,
  id: string,
): Promise<boolean> {
  if (kind.fields[field]!.to !== kind.entity) return false
  const { rows } = await tx.trx.raw<{ rows: unknown[] }>(
    `with recursive up (id) as (
       select ?::uuid
       union
       select ${field} from ${kind.entity} join up using (id)
       where organization_id = ? and deleted_at is null and ${field} is not null
     )
     select 1 from up where id = ?`,
    [id, tx.organizationId, holder],
  )
  return rows.length > 0
}
