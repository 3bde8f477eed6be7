import type { z } from 'zod'
import { invalid } from '../../db/model/errors.ts'
import { fieldTypes, type Operator } from '../../db/model/records/field-types.ts'
import {
  type Filter,
  isSortable,
  MAX_FILTERS,
  MAX_VALUES,
  parseFilterValue,
  typeOf,
} from '../../db/model/records/filters.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { isKind, kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { createSchema, updateSchema, upsertSchema } from '../../db/model/records/schemas.ts'
import { isUpsertKey, upsertKey, upsertKeys } from '../../db/model/records/upsert-keys.ts'
import { check } from '../../db/model/validate.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { link, listRelated, unlink } from '../../db/records/associations.ts'
import { createRecord } from '../../db/records/create.ts'
import { deleteRecord } from '../../db/records/delete.ts'
import { type ListQuery, listRecords } from '../../db/records/list.ts'
import { findRecord, getRecord } from '../../db/records/read.ts'
import { ratesOfSelection } from '../../db/records/selection.ts'
import { updateRecord } from '../../db/records/update.ts'
import { upsertRecord } from '../../db/records/upsert.ts'
import { attachFile, listFiles, referenceTo } from '../../db/stored-files/files.ts'
import type { FoundPage, RecordFields, RecordQuery, Records } from '../../workflows/effects/records.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { DEFAULT_PAGE } from '../../workflows/nodes/crm-paging.ts'
import { LIMITS } from '../../workflows/shared/run-limits.ts'
import type { Once } from './define.ts'

/** The organization's records for nodes: the same schemas, store and events as the API, with the run as actor. */
export function recordsIn(tx: Tenant, once: Once = (_object, _find, create) => create()): Records {
  return {
    async create(name, fields) {
      const kind = entityOf(name)
      return once(
        kind,
        (id) => findRecord(tx, kind, id),
        () => createRecord(tx, kind, parse(createSchema(kind), withTexts(kind, fields))),
        ({ id }) => id,
      )
    },
    get: async (name, id) => getRecord(tx, entityOf(name), id),
    async search(name, query) {
      const kind = entityOf(name)
      const { data, has_more, next_cursor } = await listRecords(tx, kind, listQuery(kind, query))
      return { data, has_more, next_cursor }
    },
    searchAll: (name, query, max) => searchAll(tx, entityOf(name), query, max),
    async update(name, id, fields) {
      const kind = entityOf(name)
      return updateRecord(tx, kind, id, parse(updateSchema(kind), withTexts(kind, fields)))
    },
    async upsert(name, by, fields, { on_create, on_update } = {}) {
      const kind = entityOf(name)
      if (!isUpsertKey(kind, by)) {
        const keys = `${upsertKeys(kind).join(', ')} or custom_fields.<name>`
        throw new NodeError('invalid_request', `${kind} are upserted by ${keys}.`)
      }
      const input = parse(createSchema(kind), withTexts(kind, { ...fields, ...on_create }))
      // Without the key, each run would create another record.
      if (upsertKey(by, input) === undefined)
        throw new NodeError('validation_error', `${by}: is required as the key of the upsert`)
      // An update changes only the given fields, so it does not set the defaults of a create.
      const changes = parse(upsertSchema(kind), withTexts(kind, { ...fields, ...on_update }))
      return upsertRecord(tx, kind, by, input, changes)
    },
    async delete(name, id) {
      const { deleted } = await deleteRecord(tx, entityOf(name), id)
      return { id, deleted }
    },
    link: async (name, id, target, targetId, properties) => ({
      ...(await link(tx, entityOf(name), id, entityOf(target), targetId, properties)),
    }),
    unlink: async (name, id, target, targetId) => ({
      ...(await unlink(tx, entityOf(name), id, entityOf(target), targetId)),
    }),
    async listRelated(name, id, target, limit) {
      const other = entityOf(target)
      const query = listQuery(other, limit === undefined ? {} : { limit })
      const { data, has_more } = await listRelated(tx, entityOf(name), id, other, query)
      return { data, has_more }
    },
    attachFile: async (name, id, { file_id }) => ({
      ...referenceTo(await attachFile(tx, file_id, entityOf(name), id)),
    }),
    async listFiles(name, id, limit = DEFAULT_PAGE) {
      const { data, has_more } = await listFiles(tx, entityOf(name), id, { limit, offset: 0 })
      return { data: data.map((file) => ({ ...referenceTo(file) })), has_more }
    },
  }
}

/** Pages by cursor: sort keys are not unique, and the position of a record can change between two pages. */
async function searchAll(tx: Tenant, kind: KindName, query: RecordQuery, max: number): Promise<FoundPage> {
  const data: RecordFields[] = []
  let bytes = 0
  let cursor: string | undefined
  const all = listQuery(kind, query)
  // A rate may change between two pages.
  const rates = await ratesOfSelection(tx, kind, all)
  do {
    const wanted = { ...all, rates, limit: Math.min(PAGE, max - data.length), cursor }
    const page = await listRecords(tx, kind, wanted)
    data.push(...page.data)
    bytes += Buffer.byteLength(JSON.stringify(page.data))
    if (bytes > LIMITS.valueBytes)
      throw new NodeError(
        'output_too_large',
        `The first ${data.length} of the ${kind} that match are larger than ${LIMITS.valueBytes / 1024} KiB: ${NARROWER}.`,
      )
    if (page.has_more && data.length >= max)
      throw new NodeError(
        'too_many_records',
        `More than ${max} ${kind} match: raise \`max\`, or ${NARROWER}.`,
      )
    cursor = page.next_cursor ?? undefined
  } while (cursor)
  return { data, has_more: false, next_cursor: null }
}

/** Records of one page of `searchAll`. */
const PAGE = 200

const NARROWER =
  'narrow the filters, or read them page by page in a repeat, with `cursor: "{{ previous.next_cursor }}"`'

function entityOf(name: string): KindName {
  if (isKind(name)) return name
  throw new NodeError('unknown_entity', `There is no entity ${name}: use ${kindNames.join(', ')}.`)
}

/** The ids and phone numbers of other systems are often numbers: whole ones are written as texts where a text is stored. */
function withTexts(kind: KindName, fields: RecordFields): RecordFields {
  const isText = (name: string) => {
    const type = typeOf(kinds[kind], name)?.type
    return type !== undefined && type !== 'tags' && fieldTypes[type].isText === true
  }
  const given = Object.entries(fields).map(([name, value]) => [
    name,
    Number.isSafeInteger(value) && isText(name) ? String(value) : value,
  ])
  return Object.fromEntries(given)
}

function parse(schema: z.ZodType<RecordFields>, fields: RecordFields): RecordFields {
  const checked = check(schema, fields, 'body')
  if ('issues' in checked) throw invalid(checked.issues)
  return checked.value as RecordFields
}

function listQuery(kind: KindName, query: RecordQuery): ListQuery {
  const { filters = {}, match = 'all', q, cursor, limit = DEFAULT_PAGE } = query
  const { sort = 'created_at', order = 'desc' } = query
  if (!isSortable(kinds[kind], sort))
    throw new NodeError('validation_error', `${kind} cannot be sorted by ${sort}.`)
  const given = Object.entries(filters)
  if (given.length > MAX_FILTERS)
    throw new NodeError('validation_error', `There may be at most ${MAX_FILTERS} filters.`)
  const parsed = given.map(([parameter, value]) => filterOf(kind, parameter, value))
  if (parsed.reduce((sum, { values }) => sum + values.length, 0) > MAX_VALUES)
    throw new NodeError('validation_error', `All filters together may have at most ${MAX_VALUES} values.`)
  return { limit, offset: 0, cursor, sort, order, q, match, count: 'none', filters: parsed }
}

function filterOf(kind: KindName, parameter: string, value: unknown): Filter {
  const given = Array.isArray(value) ? value.filter((one) => one !== null && one !== undefined) : value
  // Every text contains the empty text: a search for what was left empty in a form would find all records.
  const isNoPart = SEARCHES.test(parameter) && String(given ?? '').trim() === ''
  const isNothing =
    isNoPart || given === null || given === undefined || (Array.isArray(given) && given.length === 0)
  const filter = parseFilterValue(kinds[kind], parameter, isNothing ? null : given)
  if ('msg' in filter) throw invalid([filter])
  // `parseFilterValue` reads null as the text `null`, which the name Annuller Ltd contains.
  return isNothing && FINDS.includes(filter.operator) ? { ...filter, values: [] } : filter
}

/** The filters that search for a part of a text. */
const SEARCHES = /\[(contains|starts_with)\]$/

/** The operators that find nothing by null; `nin` then leaves nothing out. */
const FINDS: Operator[] = ['contains', 'starts_with', 'eq', 'in', 'has', 'nin']
