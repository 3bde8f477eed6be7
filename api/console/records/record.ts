import type { KindName } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import type { List, View } from '../route.ts'

/** What pages read of a record, of its schema and of users. */
export type RecordRow = Record<string, unknown> & {
  id: string
  object: string
  version: number
  custom_fields: Record<string, unknown>
}

export interface SchemaField {
  name: string
  type: string
  description: string
  required: boolean
  read_only: boolean
  default: unknown
  values: string[] | null
  max: number | null
  sortable: boolean
  operators: string[]
  references: string | null
}

export interface CustomField {
  name: string
  label: string
  type: string
  description: string | null
  required: boolean
  options: string[] | null
  default: unknown
  operators: string[]
  sortable: boolean
}

export interface RecordSchema {
  entity: KindName
  singular: string
  description: string
  fields: SchemaField[]
  custom_fields: CustomField[]
}

export interface Named {
  id: string
  name: string
}

export const schemaOf = ({ read }: View, kind: string) => read<RecordSchema>(`/app/v1/objects/${kind}/schema`)

export const usersOf = async ({ read }: View): Promise<Named[]> =>
  (await read<List<Named>>('/app/v1/users?limit=200')).data

/** The name of a record, of any kind. */
export function titleOf(record: Record<string, unknown>): string {
  const person = [record.first_name, record.last_name].filter(Boolean).join(' ')
  const body = typeof record.body === 'string' ? record.body.split('\n')[0]!.slice(0, 80) : undefined
  const found =
    record.name ?? record.title ?? record.subject ?? (person || record.email || record.phone || body)
  return String(found || record.type || record.id)
}

/** `contacts` for `contact`, the member `object` of a record. */
export const kindOfObject = (object: string): KindName | undefined =>
  kindNames.find((kind) => kinds[kind].object === object)

/** The names of the records that ids refer to, one request for each kind. */
export async function namesOf(
  view: View,
  references: readonly [kind: string, id: unknown][],
): Promise<Map<string, string>> {
  const ids = new Map<string, Set<string>>()
  for (const [kind, id] of references)
    if (typeof id === 'string') ids.set(kind, (ids.get(kind) ?? new Set()).add(id))
  const found = await Promise.all(
    [...ids].map(async ([kind, of]) => {
      if (kind === 'users') return usersOf(view)
      const path = `/app/v1/objects/${kind}?id[in]=${[...of].join(',')}&limit=${Math.min(200, of.size)}&count=none`
      const list = await view.readIfAllowed<List<RecordRow>>(path)
      return (list?.data ?? []).map((record) => ({ id: record.id, name: titleOf(record) }))
    }),
  )
  return new Map(found.flat().map(({ id, name }) => [id, name]))
}

/** Whether a table has the records of a kind. */
export const isRecordKind = (table: string): table is KindName => kindNames.some((kind) => kind === table)
