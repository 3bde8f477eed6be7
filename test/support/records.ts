import { parseFilter } from '../../db/model/records/filters.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kinds } from '../../db/model/records/kinds/index.ts'
import { createSchema, type RecordInput, updateSchema } from '../../db/model/records/schemas.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { link } from '../../db/records/associations.ts'
import { createRecord } from '../../db/records/create.ts'
import { deleteRecord } from '../../db/records/delete.ts'
import { type ListQuery, listRecords } from '../../db/records/list.ts'
import { getRecord } from '../../db/records/read.ts'
import { restoreRecord } from '../../db/records/restore.ts'
import { updateRecord } from '../../db/records/update.ts'
import { type TestDatabase, testActor } from './database.ts'

/** The records of one organization. Each call has its own transaction and uses the schemas of the API. */
export function recordsOf(db: TestDatabase, organizationId: string) {
  const tenant = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organizationId, testActor, work)
  return {
    tenant,
    create: (kind: KindName, fields: RecordInput) =>
      tenant((tx) => createRecord(tx, kind, createSchema(kind).parse(fields))),
    update: (kind: KindName, id: string, fields: RecordInput, ifVersion?: number) =>
      tenant((tx) =>
        updateRecord(tx, kind, id, updateSchema(kind).parse(fields), {
          ifVersion: ifVersion === undefined ? undefined : [ifVersion],
        }),
      ),
    get: (kind: KindName, id: string) => tenant((tx) => getRecord(tx, kind, id)),
    delete: (kind: KindName, id: string) => tenant((tx) => deleteRecord(tx, kind, id)),
    restore: (kind: KindName, id: string) => tenant((tx) => restoreRecord(tx, kind, id)),
    link: (kind: KindName, id: string, target: KindName, targetId: string, properties = {}) =>
      tenant((tx) => link(tx, kind, id, target, targetId, properties)),
    list: (kind: KindName, query: Partial<ListQuery> = {}) =>
      tenant((tx) => listRecords(tx, kind, { ...everything, ...query })),
    historyOf: (id: string) =>
      tenant((tx) =>
        tx.trx('record_history').where({ organization_id: organizationId, record_id: id }).orderBy('version'),
      ),
    eventsOf: (id: string) =>
      tenant((tx) =>
        tx.trx('events').where({ organization_id: organizationId, subject_id: id }).orderBy('id'),
      ),
  }
}

export type TestRecords = ReturnType<typeof recordsOf>

export const everything: ListQuery = {
  limit: 200,
  offset: 0,
  sort: 'created_at',
  order: 'desc',
  match: 'all',
  count: 'exact',
  filters: [],
}

/** Filters in the format of query strings: `{ 'amount[gte]': '5' }`. */
export const filtersOf = (kind: KindName, parameters: Record<string, string>) =>
  Object.entries(parameters).map(([parameter, value]) => {
    const filter = parseFilter(kinds[kind], parameter, value)
    if ('msg' in filter) throw new Error(`${parameter}: ${filter.msg}`)
    return filter
  })
