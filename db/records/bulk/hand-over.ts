import { invalid } from '../../model/errors.ts'
import { type KindName, userFields } from '../../model/records/kind.ts'
import { kindNames, kinds } from '../../model/records/kinds/index.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { organizationTimezone } from '../local-times.ts'
import { insertJob, type KeptSelection } from './jobs.ts'

/** Who gets the records of a user: these users in turn; none: the field is cleared. */
export type Heirs = string[]

/** A field that names the user in some live record. The author of a note stays its author. */
export interface Held {
  entity: KindName
  field: string
}

/** The fields in which live records name a user. */
export async function heldBy(tx: Tenant, userId: string): Promise<Held[]> {
  const all = kindNames.flatMap((entity) =>
    userFields(kinds[entity]).flatMap((field): Held[] => (field === 'author_id' ? [] : [{ entity, field }])),
  )
  const { rows } = await tx.trx.raw<{ rows: { place: number }[] }>(
    all
      .map(
        ({ entity, field }, place) =>
          `select ${place} as place where exists (
             select from ${entity} where organization_id = ? and ${field} = ? and deleted_at is null)`,
      )
      .join(' union all '),
    all.flatMap(() => [tx.organizationId, userId]),
  )
  return rows.map(({ place }) => all[place]!)
}

/**
 * Stores bulk jobs that give what a user holds to others, one for each field: workers do them, as every bulk job, and
 * each can be undone. The heirs are members. @returns the ids of the jobs.
 */
export async function handOver(tx: Tenant, userId: string, held: Held[], heirs: Heirs): Promise<string[]> {
  const time_zone = await organizationTimezone(tx)
  const jobs: string[] = []
  for (const { entity, field } of held) {
    const list_query: KeptSelection = {
      sort: 'created_at',
      order: 'asc',
      match: 'all',
      filters: [{ field, operator: 'eq', values: [userId] }],
      time_zone,
      types: [],
    }
    jobs.push(
      await insertJob(tx, {
        entity,
        action: 'reassign',
        query: JSON.stringify({ [field]: userId }),
        list_query: JSON.stringify(list_query),
        data: JSON.stringify({ [field]: heirs.length > 1 ? heirs : (heirs[0] ?? null) }),
      }),
    )
  }
  return jobs
}

/** The patch of the record with this number in its job: of several users each gets every nth record. */
export const inTurn = (data: Record<string, unknown>, number: number): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(data).map(([field, value]) => [
      field,
      TURNS.includes(field) && Array.isArray(value) ? value[number % value.length] : value,
    ]),
  )

/** The fields of users, whose values are else no lists. */
const TURNS = [...new Set(kindNames.flatMap((kind) => userFields(kinds[kind])))]

/** Throws `validation_error` unless all heirs are other members. */
export function requireHeirs(userId: string, heirs: Heirs, members: ReadonlySet<string>): void {
  const wrong = heirs.find((id) => id === userId || !members.has(id))
  if (wrong === undefined) return
  throw invalid([
    {
      loc: ['query', 'hand_over'],
      msg: 'is not another member of the organization',
      type: 'invalid_value',
      input: wrong,
    },
  ])
}
