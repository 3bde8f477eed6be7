import { z } from 'zod'
import { columnTypes, exportable, namedBy } from '../../db/exports/columns.ts'
import {
  createExport,
  type ExportRow,
  exportFile,
  formatOf,
  getExport,
  listExports,
} from '../../db/exports/exports.ts'
import { EXPORT_DAYS } from '../../db/exports/purge.ts'
import { workbook } from '../../db/model/csv/workbook.ts'
import { AppError, conflict, firstOfEachLoc, invalid } from '../../db/model/errors.ts'
import { EXPORT_FORMATS, type ExportFormat } from '../../db/model/files/export-format.ts'
import { EXPORT_STATUSES } from '../../db/model/files/statuses.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { actor } from '../../db/model/records/schemas.ts'
import { check } from '../../db/model/validate.ts'
import { getView, type View } from '../../db/records/views.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { allows, type Scope } from '../http/scopes.ts'
import { ANY } from '../http/upload.ts'
import { filterScopes } from './filter-scopes.ts'
import { jobError } from './import-shapes.ts'
import { asTexts, checkFields, parseSelection, storedQuery } from './stored-query.ts'

const params = z.object({ export_id: z.uuid().toLowerCase() })
type Request = RouteRequest<z.output<typeof params>>

const EXPORTS = 'exports'
const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

const newExport = z
  .object({
    entity: z
      .enum(kindNames)
      .optional()
      .describe('The kind of the records. Required, unless `view_id` says it.'),
    view_id: z
      .uuid()
      .toLowerCase()
      .optional()
      .describe('A view: its filters, sort and columns, where the request has no others.'),
    query: storedQuery(EXPORTS)
      .default({})
      .describe(
        'The filters and the sort, as parameters of the list: `{"lead_status[in]": "new,open", "q": "acme", "sort": "email", "order": "asc"}`. Numbers and booleans are converted to text; an array is a repeated parameter.',
      ),
    fields: z
      .array(z.string().max(100))
      .min(1)
      .max(500)
      .optional()
      .describe(
        'The columns after the id, in this order; default: all. `custom_fields` stands for all custom fields.',
      ),
    format: z.enum(EXPORT_FORMATS).optional().describe('`xlsx` is a workbook. Default: csv.'),
    delimiter: z
      .enum([',', ';'])
      .optional()
      .describe('Only with CSV. Default: as the `locale` of the organization writes numbers.'),
    decimal: z.enum(['.', ',']).optional().describe('The decimal separator of CSV. Default: the same.'),
    names: z
      .boolean()
      .optional()
      .describe('Adds a column with the names after each column of ids: `owner_name`, `company_name`.'),
    bom: z.boolean().default(false).describe('Begin the file with a byte order mark, for Excel.'),
  })
  .strict()
  .meta({ id: 'ExportCreate' })

type ExportRequest = z.output<typeof newExport>

/** The export that is requested, with what its view says. */
const completeExport = (view: View | undefined) =>
  newExport.transform(
    ({ entity: kind = view?.entity, query: given, fields = view?.fields ?? null, bom, ...others }, ctx) => {
      const { view_id: _, ...options } = others
      if (!kind || (view && view.entity !== kind)) {
        const message = kind ? `the view is of ${view!.entity}` : 'entity or view_id is required'
        ctx.addIssue({ code: 'custom', path: ['entity'], message, params: { type: 'missing' } })
        return z.NEVER
      }
      const query = { ...view?.query, ...asTexts(given) }
      checkFields(fields, exportable(kind), ctx)
      const list_query = parseSelection(kind, query, EXPORTS, ctx)
      if (!list_query) return z.NEVER
      return { entity: kind, query, list_query, fields, bom, options: withoutUndefined(options) }
    },
  )

const withoutUndefined = (options: Partial<Record<keyof ExportFormat, unknown>>) =>
  Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as Partial<ExportFormat>

/** Throws `validation_error`. */
function checkedExport(body: ExportRequest, view: View | undefined) {
  const schema = completeExport(view)
  const checked = check(schema, body, 'body')
  if ('issues' in checked) throw invalid(firstOfEachLoc(checked.issues))
  return checked.value as z.output<typeof schema>
}

type Content = Pick<ExportRow, 'entity' | 'fields' | 'list_query' | 'options'>

/**
 * The scopes that show the content of an export: of its kind, of the kinds that its filters read, and of records whose
 * names it has.
 */
const scopesOf = ({ entity, fields, list_query, options }: Content): Scope[] => [
  `${entity}:read`,
  ...filterScopes(list_query),
  ...(options.names ? (fields ?? exportable(entity)) : []).flatMap((field): Scope[] => {
    const by = namedBy(entity, field)
    return by === undefined || by === 'users' ? [] : [`${by}:read`]
  }),
]

const exportSchema = z
  .object({
    object: z.literal('export'),
    id: z.uuid(),
    entity: z.enum(kindNames),
    query: z.record(z.string(), z.unknown()),
    fields: z.array(z.string()).nullable(),
    bom: z.boolean(),
    format: z.enum(EXPORT_FORMATS),
    delimiter: z.string(),
    decimal: z.string(),
    names: z.boolean(),
    status: z.enum(EXPORT_STATUSES),
    columns: z.array(z.string()).nullable().describe('The columns of the file; null before the start.'),
    rows: z.int(),
    bytes: z.int(),
    error: jobError.nullable(),
    created_by: actor,
    created_at: z.date(),
    started_at: z.date().nullable(),
    ended_at: z.date().nullable(),
    expires_at: z
      .date()
      .nullable()
      .describe(`The time when the file is deleted: ${EXPORT_DAYS} days after completion.`),
  })
  .meta({ id: 'Export' })

const tag = 'Exports'

/** Exports of records to CSV files, which are created in the background and expire. */
export const exportRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/exports',
    scope: { ofRecords: 'read' },
    id: 'listExports',
    tag,
    summary: 'List exports',
    description: 'Lists the exports of the kinds that the key can read, newest first.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(exportSchema) },
    handler: async ({ query, caller, tenant }) => {
      const readable = kindNames.filter((kind) => allows(caller.scopes, `${kind}:read`))
      const page = await tenant((tx) => listExports(tx, readable, { ...query, offset: offsetOf(query) }))
      return presentList({ ...page, data: page.data.map(present) })
    },
  }),
  route({
    method: 'POST',
    path: '/exports',
    scope: { ofRecords: 'read' },
    id: 'createExport',
    grows: true,
    tag,
    summary: 'Create an export',
    description:
      'Creates a CSV file in the background: poll the export until its status is `completed`, then download the file. An import of the file yields the same records. A cell that a spreadsheet could read as a formula is prefixed with an apostrophe; an import removes it.',
    body: newExport,
    response: { status: 201, schema: exportSchema },
    example: {
      entity: 'contacts',
      query: { 'email[contains]': 'example.com', sort: 'email', order: 'asc' },
      fields: ['email', 'first_name'],
    },
    handler: async ({ body, requireScopes, tenant }) => {
      const { view_id } = body
      const view = view_id && (await tenant((tx) => getView(tx, view_id)))
      const wanted = checkedExport(body, view || undefined)
      requireScopes(scopesOf(wanted))
      return present(await tenant((tx) => createExport(tx, wanted)))
    },
  }),
  route({
    method: 'GET',
    path: '/exports/{export_id}',
    scope: { ofRecords: 'read' },
    id: 'getExport',
    tag,
    summary: 'Retrieve an export',
    params,
    response: { status: 200, schema: exportSchema },
    handler: async (request) => present(await find(request)),
  }),
  route({
    method: 'GET',
    path: '/exports/{export_id}/file',
    scope: { ofRecords: 'read' },
    id: 'getExportFile',
    tag,
    summary: 'Download the file of an export',
    description:
      'Returns CSV in UTF-8 (RFC 4180), or a workbook. Needs the scopes that its creation needed. 409 before the export is completed, 404 after it has expired.',
    params,
    response: { status: 200, file: ANY, description: 'The file.' },
    handler: async (request) => {
      const row = await find(request)
      request.requireScopes(scopesOf(row))
      if (row.status === 'expired')
        throw new AppError('not_found', 'the file has expired', { hint: 'create another export' })
      if (row.status === 'failed') throw conflict(`the export has failed: ${row.error?.message}`)
      if (row.status !== 'completed')
        throw conflict(`the export is ${row.status}`, { hint: 'poll it until it is completed' })
      const name = `${row.entity}-${row.id}`
      const csv = exportFile(request.tenant, row)
      if (formatOf(row).format === 'csv')
        return { name: `${name}.csv`, content: csv, type: 'text/csv; charset=utf-8' }
      const types = await request.tenant((tx) => columnTypes(tx, row.entity, row.columns!))
      return { name: `${name}.xlsx`, content: workbook(csv, types), type: XLSX }
    },
  }),
]

/** The export, if the caller may read records of its kind. Throws not_found, insufficient_scope. */
async function find({ params, requireScopes, tenant }: Request): Promise<ExportRow> {
  const row = await tenant((tx) => getExport(tx, params.export_id))
  requireScopes([`${row.entity}:read` as Scope])
  return row
}

function present(row: ExportRow): z.input<typeof exportSchema> {
  const { id, entity, query, fields, bom, status, columns, rows, bytes, error } = row
  const { created_by, created_at, started_at, ended_at } = row
  const done = status === 'completed' || status === 'expired'
  return {
    object: 'export',
    id,
    entity,
    query,
    fields,
    bom,
    ...formatOf(row),
    status,
    columns,
    rows,
    bytes,
    error,
    created_by,
    created_at,
    started_at,
    ended_at,
    expires_at: done && ended_at ? new Date(ended_at.getTime() + EXPORT_DAYS * 86_400_000) : null,
  }
}
