import { z } from 'zod'
import type { Records } from '../effects/records.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import {
  BOOLEAN,
  listOf,
  members,
  NULL,
  TEXT,
  typeOfSchema,
  UNKNOWN,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
import { fileReference, givenFile } from '../shared/files.ts'
import { isObject } from '../shared/is-object.ts'
import { kindReadBy } from '../shared/related-filters.ts'
import { type Catalogue, kindNamed } from './catalogue.ts'
import {
  DEFAULT_MAX,
  DEFAULT_PAGE,
  firstOnly,
  LONGEST_PAGE,
  pagingFields,
  pagingProblems,
  readsPages,
} from './crm-paging.ts'
import { checkValues, customFieldsOf, kindOf, WRITTEN } from './crm-values.ts'
import { type Authored, defineNode, type TypeContext } from './define.ts'
import { leftOutOfSearch } from './left-out-conditions.ts'

const entity = z.string().min(1).describe('The plural name of a record kind: contacts, deals, notes, ….')
const id = z.uuid().describe("The record's id.")
const fields = z.record(z.string(), z.unknown()).describe('Field values, as in POST /v1/objects/{entity}.')
const target = entity.describe('The record kind at the other end of the link.')
const limit = z.int().min(1).max(LONGEST_PAGE).describe(`How many at most; default ${DEFAULT_PAGE}.`)

const NULLABLE_TEXT = unionOf([TEXT, NULL])

const READS: unknown[] = ['get', 'search', 'list_related', 'list_files']
const WRITES: unknown[] = ['create', 'update', 'upsert']
const FILE_OPERATIONS: unknown[] = ['attach_file', 'list_files']
const FREES: unknown[] = ['delete', 'unlink']
const reads = ({ operation }: Authored) => READS.includes(operation)

const operations = z.discriminatedUnion('operation', [
  z.strictObject({ operation: z.literal('create'), entity, fields }),
  z.strictObject({ operation: z.literal('get'), entity, id }),
  z.strictObject({
    operation: z.literal('search'),
    entity,
    filters: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        'As in record lists: `email: a@b.c`, with an operator `created_at[gte]: 2026-01-01`; `associations.deals[is_null]: true`, `tags[has_not]: vip`, `last_activity_at[not_since]: last_30_days`.',
      ),
    match: z.enum(['all', 'any']).optional(),
    q: z
      .string()
      .regex(/\S/, 'is empty, and would find all records: give it a word, or leave it out')
      .optional()
      .describe('Full-text search: each word must occur somewhere in the record.'),
    sort: z.string().optional(),
    order: z.enum(['asc', 'desc']).optional(),
    limit: limit.optional(),
    ...pagingFields,
  }),
  z.strictObject({ operation: z.literal('update'), entity, id, fields }),
  z.strictObject({
    operation: z.literal('upsert'),
    entity,
    by: z
      .string()
      .min(1)
      .describe(
        'The field that identifies a record: email (contacts), domain (companies), external_id or a unique custom_fields.<name>. `fields` must have it.',
      ),
    fields,
    on_create: fields
      .optional()
      .describe('Further fields of a record that is created: an existing one keeps its own.'),
    on_update: fields.optional().describe('Further fields of a record that exists.'),
  }),
  z.strictObject({ operation: z.literal('delete'), entity, id }),
  z.strictObject({
    operation: z.literal('link'),
    entity,
    id,
    target,
    target_id: id,
    properties: z.looseObject({ label: z.string().max(64).nullish() }).optional(),
  }),
  z.strictObject({ operation: z.literal('unlink'), entity, id, target, target_id: id }),
  z.strictObject({ operation: z.literal('list_related'), entity, id, target, limit: limit.optional() }),
  z.strictObject({
    operation: z.literal('attach_file'),
    entity,
    id,
    file: givenFile.describe('Such as `"{{ nodes.<id>.output.file }}"` of an api_request.'),
  }),
  z.strictObject({ operation: z.literal('list_files'), entity, id, limit: limit.optional() }),
])

export const crmManager = defineNode({
  type: 'crm_manager',
  engine: 1,
  laterUses: [
    { engine: 8, isUsed: ({ operation }) => FILE_OPERATIONS.includes(operation) },
    { engine: 9, isUsed: ({ on_create, on_update }) => on_create !== undefined || on_update !== undefined },
    { engine: 9, isUsed: readsPages },
    { engine: 14, isUsed: ({ filters }) => filterNames(filters).some(isLaterFilter) },
  ],
  category: 'records',
  title: 'CRM records',
  alsoCalled: [
    'crm',
    'record',
    'records',
    'contact',
    'contacts',
    'deal',
    'create_contact',
    'update_contact',
    'create_record',
    'update_record',
    'database',
  ],
  description:
    'Reads, writes, searches and links records, and attaches files. Outputs: create, get and update the record; upsert `{record, created}`; search `{data, has_more, next_cursor}`: the first 50 matches, or `limit`, or with `all: true` every one; list_related and list_files `{data, has_more}`, in the same way up to `limit`; attach_file the file. A related record has its link in `association`.',
  effect: (config) => (reads(config) ? 'read' : 'write'),
  grows: (config) => !reads(config) && !FREES.includes(config.operation),
  effects: ['records'],
  config: operations,
  output: z.record(z.string(), z.unknown()),
  handles: () => [{ name: 'success', description: 'The operation succeeded.' }],
  scopes(config, catalogue) {
    const level = reads(config) ? 'read' : 'write'
    const named = kindsOf(config, catalogue)
    const { filters } = config
    // What a placeholder gives may have any member.
    const related =
      filters === undefined || isObject(filters)
        ? filterNames(filters).flatMap((name) => kindReadBy(fieldOf(name)) ?? [])
        : Object.keys(catalogue.entities)
    const times = new Set(named.flatMap((kind) => catalogue.entities[kind]?.backdated ?? []))
    const backdates = (fields: unknown) =>
      isObject(fields) ? Object.keys(fields).some((name) => times.has(name)) : fields !== undefined
    return [
      ...named.map((kind) => `${kind}:${level}`),
      ...related.map((kind) => `${kind}:read`),
      ...(WRITTEN.some((member) => backdates(config[member])) ? ['records:backdate'] : []),
    ]
  },
  check: (config, catalogue) => [
    ...checkValues(config, catalogue),
    ...pagingProblems(config),
    ...(config.operation === 'search' ? leftOutOfSearch(config) : []),
  ],
  customFields: customFieldsOf,
  outputType,
  firstOnly,
  keySchemas,
  raises,
  example: {
    config: {
      operation: 'upsert',
      entity: 'contacts',
      by: 'email',
      fields: { email: '{{ inputs.email }}', first_name: 'Ada' },
    },
    inputs: { inputs: { email: 'ada@example.com' } },
    output: {
      record: {
        id: '019a0000-0000-7000-8000-000000000001',
        object: 'contact',
        email: 'ada@example.com',
        first_name: 'Ada',
      },
      created: true,
    },
  },
  async run(config, { records }) {
    return { output: await operate(config, records) }
  },
})

async function operate(
  config: z.output<typeof operations>,
  records: Records,
): Promise<Record<string, unknown>> {
  switch (config.operation) {
    case 'create':
      return records.create(config.entity, config.fields)
    case 'get':
      return records.get(config.entity, config.id)
    case 'search': {
      const { operation: _, entity: kind, all, max = DEFAULT_MAX, cursor, ...query } = config
      const given = Object.entries({ ...query, cursor: cursor || undefined }).filter(
        ([, value]) => value !== undefined,
      )
      const wanted = Object.fromEntries(given)
      return all ? records.searchAll(kind, wanted, max) : records.search(kind, wanted)
    }
    case 'update':
      return records.update(config.entity, config.id, config.fields)
    case 'upsert':
      return records.upsert(config.entity, config.by, config.fields, {
        on_create: config.on_create,
        on_update: config.on_update,
      })
    case 'delete':
      return records.delete(config.entity, config.id)
    case 'link':
      return records.link(config.entity, config.id, config.target, config.target_id, config.properties)
    case 'unlink':
      return records.unlink(config.entity, config.id, config.target, config.target_id)
    case 'list_related':
      return records.listRelated(config.entity, config.id, config.target, config.limit)
    case 'attach_file':
      return records.attachFile(config.entity, config.id, config.file)
    case 'list_files':
      return records.listFiles(config.entity, config.id, config.limit)
  }
}

/** The names of the filters: `stage`, `amount[gte]`. */
const filterNames = (filters: unknown): string[] => (isObject(filters) ? Object.keys(filters) : [])

const fieldOf = (name: string) => name.split('[')[0]!

const isLaterFilter = (name: string): boolean =>
  kindReadBy(fieldOf(name)) !== undefined || /\[(has_not|not_since)\]$/.test(name)

/** The record kinds that the node accesses; all kinds if a placeholder names one. */
function kindsOf(config: Authored, catalogue: Catalogue): string[] {
  const { entity, target } = config
  const linked = WRITTEN.flatMap((member) => linkedBy(entity, config[member] ?? {}, catalogue))
  const named = [entity, target, ...linked].filter((name) => name !== undefined)
  const open = named.some((name) => typeof name !== 'string' || hasPlaceholder(name))
  if (open) return Object.keys(catalogue.entities)
  return [...new Set(named.flatMap((name) => kindNamed(catalogue, String(name)) ?? []))]
}

/** The kinds that `fields` would link the record with: by references and by `associations`. */
function linkedBy(entity: unknown, fields: unknown, catalogue: Catalogue): unknown[] {
  if (!isObject(fields)) return [fields]
  const { associations = [] } = fields
  const kind = kindNamed(catalogue, String(entity))
  const references = kind === undefined ? {} : catalogue.entities[kind]!.references
  return [
    ...Object.keys(references)
      .filter((name) => Object.hasOwn(fields, name))
      .map((name) => references[name]),
    ...[associations].flat().map((one) => (isObject(one) ? one.object : one)),
  ]
}

function outputType(
  { operation, entity, target }: Authored,
  { catalogue: { entities } }: TypeContext,
): ValueType {
  const kind = kindOf(entity, entities)
  const page = (record: ValueType | undefined) =>
    members({ data: listOf(record ?? UNKNOWN), has_more: BOOLEAN })
  switch (operation) {
    case 'create':
    case 'get':
    case 'update':
      return kind?.record ?? UNKNOWN
    case 'search':
      return members({ data: listOf(kind?.record ?? UNKNOWN), has_more: BOOLEAN, next_cursor: NULLABLE_TEXT })
    case 'list_related':
      return page(kindOf(target, entities)?.related)
    case 'list_files':
      return page(typeOfSchema(fileReference))
    case 'attach_file':
      return typeOfSchema(fileReference)
    case 'upsert':
      return members({ record: kind?.record ?? UNKNOWN, created: BOOLEAN })
    case 'delete':
      return members({ id: TEXT, deleted: BOOLEAN })
    default:
      return UNKNOWN
  }
}

function keySchemas({ operation, entity }: Authored, { entities }: Catalogue) {
  const kind = kindOf(entity, entities)
  if (!kind || !WRITES.includes(operation)) return []
  return WRITTEN.map((member) => ({
    path: [member],
    schema: operation === 'update' || member === 'on_update' ? kind.schemas.update : kind.schemas.create,
  }))
}

/** The actions of the events that an operation raises. */
const ACTIONS: Record<string, readonly string[]> = {
  create: ['created'],
  update: ['updated'],
  upsert: ['created', 'updated'],
  delete: ['deleted'],
}

/** The events that follow from a written field, by kind and field. */
const OF_FIELDS: Record<string, Record<string, readonly string[]>> = {
  deals: { stage: ['stage_changed', 'won', 'lost'] },
  tasks: { assignee_id: ['assigned'], status: ['completed'] },
}

function raises({ operation, entity, ...config }: Authored, { entities }: Pick<Catalogue, 'entities'>) {
  const kind = kindOf(entity, entities)
  if (!kind) return { events: [], fields: [] }
  const fields = WRITTEN.flatMap((member) => {
    const written = config[member]
    return isObject(written) ? Object.keys(written) : []
  })
  const actions = [
    ...(ACTIONS[String(operation)] ?? []),
    ...fields.flatMap((field) => OF_FIELDS[String(entity)]?.[field] ?? []),
  ]
  return { events: actions.map((action) => `${kind.object}.${action}`), fields }
}
