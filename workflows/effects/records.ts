import { listed, type Port } from './define.ts'

export type RecordFields = Record<string, unknown>

export interface RecordQuery {
  filters?: Record<string, unknown>
  match?: 'all' | 'any'
  q?: string
  sort?: string
  order?: 'asc' | 'desc'
  limit?: number
  /** `next_cursor` of the page before. */
  cursor?: string
}

/** The further fields of an upsert, by what it does; they replace those of the same name. */
export interface UpsertFields {
  on_create?: RecordFields | undefined
  on_update?: RecordFields | undefined
}

export type RecordPage = { data: RecordFields[]; has_more: boolean }

/** `next_cursor` is null on the last page. */
export type FoundPage = RecordPage & { next_cursor: string | null }

/**
 * The organization's own records. Entities are plural kinds (`contacts`), ids are UUIDs. Every method throws the error
 * of the store as a NodeError.
 */
export interface Records {
  create(entity: string, fields: RecordFields): Promise<RecordFields>
  get(entity: string, id: string): Promise<RecordFields>
  search(entity: string, query: RecordQuery): Promise<FoundPage>
  /**
   * All matches, page by page. Throws NodeError `too_many_records` if there are more than `max`, and `output_too_large`
   * if they are larger than a value may be.
   */
  searchAll(entity: string, query: RecordQuery, max: number): Promise<FoundPage>
  update(entity: string, id: string, fields: RecordFields): Promise<RecordFields>
  /** `by` is `email` (contacts), `domain` (companies) or `external_id`. `only`: fields of a create or an update only. */
  upsert(
    entity: string,
    by: string,
    fields: RecordFields,
    only?: UpsertFields,
  ): Promise<{ record: RecordFields; created: boolean }>
  delete(entity: string, id: string): Promise<{ id: string; deleted: true }>
  link(
    entity: string,
    id: string,
    target: string,
    targetId: string,
    properties?: RecordFields,
  ): Promise<RecordFields>
  unlink(entity: string, id: string, target: string, targetId: string): Promise<RecordFields>
  listRelated(entity: string, id: string, target: string, limit?: number): Promise<RecordPage>
  /** @returns the file of the record: an earlier one, if the record has the same content under the same name. */
  attachFile(entity: string, id: string, file: { file_id: string }): Promise<RecordFields>
  /** References to the files of a record, newest first. */
  listFiles(entity: string, id: string, limit?: number): Promise<RecordPage>
}

export const records: Port<Records> = {
  classes: ['read', 'write'],
  scoped: true,
  words: {
    create: {
      call: (entity, fields) => [`creating a record in ${entity}`, ...fieldsOf(fields)].join(', '),
      result: (record) => `created ${one(record)}`,
    },
    get: {
      call: (entity, id) => `reading ${id} of ${entity}`,
      result: (record) => `read ${one(record)}`,
    },
    search: {
      call: searching,
      result: found,
    },
    searchAll: {
      call: (entity, query, max) => `${searching(entity, query)}, all of them, ${max} at most`,
      result: found,
    },
    update: {
      call: (entity, id, fields) => [`updating ${id} of ${entity}`, ...fieldsOf(fields)].join(', '),
      result: (record) => `updated ${one(record)}, now version ${record.version}`,
    },
    upsert: {
      call: (entity, by, fields, only = {}) =>
        [
          `upserting a record in ${entity} by ${by}`,
          ...fieldsOf({ ...fields, ...only.on_create, ...only.on_update }),
        ].join(', '),
      result: ({ record, created }) => `${created ? 'created' : 'updated'} ${one(record)}`,
    },
    delete: {
      call: (entity, id) => `deleting ${id} of ${entity}`,
      result: (_, entity, id) => `deleted ${id} of ${entity}`,
    },
    link: {
      call: (entity, id, target, targetId) => `linking ${id} of ${entity} to ${targetId} of ${target}`,
      result: (_, entity, id, target, targetId) => `linked ${id} of ${entity} to ${targetId} of ${target}`,
    },
    unlink: {
      call: (entity, id, target, targetId) => `unlinking ${id} of ${entity} from ${targetId} of ${target}`,
      result: (_, entity, id, target, targetId) =>
        `unlinked ${id} of ${entity} from ${targetId} of ${target}`,
    },
    listRelated: {
      call: (entity, id, target) => `listing the ${target} of ${id} of ${entity}`,
      result: found,
    },
    attachFile: {
      call: (entity, id, { file_id }) => `attaching the file ${file_id} to ${id} of ${entity}`,
      result: ({ file_id }, entity, id) => `attached the file ${file_id} to ${id} of ${entity}`,
    },
    listFiles: {
      call: (entity, id) => `listing the files of ${id} of ${entity}`,
      result: found,
    },
  },
}

function searching(entity: string, { filters = {}, ...query }: RecordQuery): string {
  const by = listed('by', Object.keys(query))
  return [`searching ${entity}`, ...by, ...listed('filters', Object.keys(filters))].join(', ')
}

const fieldsOf = (fields: RecordFields) => listed('fields', Object.keys(fields))

const one = (record: RecordFields) => `${record.object} ${record.id}`

function found({ data, has_more }: RecordPage): string {
  return `found ${data.length}${has_more ? ', and there are more' : ''}`
}
