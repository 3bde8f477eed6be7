import { z } from 'zod'
import { invalid } from '../../db/errors.ts'
import { errorsFile } from '../../db/imports/errors-file.ts'
import {
  createImport,
  getImport,
  type ImportRow,
  listImports,
  type Mapping,
} from '../../db/imports/imports.ts'
import { resumeImport, startImport, stopImport } from '../../db/imports/state.ts'
import { receiveFile } from '../../db/imports/upload.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { finderBy } from '../../db/records/find-by-key.ts'
import type { EntityName } from '../../db/records/model/kind.ts'
import { entityNames } from '../../db/records/model/kinds/index.ts'
import { isUpsertKey, upsertKeys } from '../../db/records/model/upsert-keys.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { allows, requireScopes, type Scope } from '../http/scopes.ts'
import { importSchema, newImport, presentImport, startBody } from './import-shapes.ts'
import { linkScopes } from './link-scopes.ts'

const params = z.object({ import_id: z.uuid().toLowerCase() })
type Request = RouteRequest<z.output<typeof params>>

const MAX_FILE = 32 * 1024 * 1024
const tag = 'Imports'
const shown = { status: 200, schema: importSchema } as const

/** CSV files that become records: create, upload, look at what was understood, start. */
export const importRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/imports',
    scope: { ofRecords: 'read' },
    id: 'listImports',
    tag,
    summary: 'List imports',
    description: 'Of the kinds that the key may read, the newest first.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(importSchema) },
    handler: async ({ query, caller, tenant }) => {
      const readable = entityNames.filter((entity) => allows(caller.scopes, `${entity}:read`))
      const page = await tenant((tx) => listImports(tx, readable, { ...query, offset: offsetOf(query) }))
      return presentList({ ...page, data: page.data.map(presentImport) })
    },
  }),
  route({
    method: 'POST',
    path: '/imports',
    scope: { ofRecords: 'write' },
    id: 'createImport',
    tag,
    summary: 'Create an import',
    description:
      'Then PUT the file, look at the mapping that is proposed, and start: with `dry_run` first, if you like.',
    body: newImport,
    response: { status: 201, schema: importSchema },
    example: { entity: 'contacts', mode: 'upsert', by: 'email' },
    handler: async ({ body, caller, tenant }) => {
      requireScopes(caller, [`${body.entity}:write`])
      const created = await tenant(async (tx) => {
        await checkKey(tx, body)
        return createImport(tx, body)
      })
      return presentImport(created)
    },
  }),
  route({
    method: 'GET',
    path: '/imports/{import_id}',
    scope: { ofRecords: 'read' },
    id: 'getImport',
    tag,
    summary: 'Read an import and its progress',
    params,
    response: shown,
    handler: async (request) => presentImport(await find(request, 'read')),
  }),
  route({
    method: 'PUT',
    path: '/imports/{import_id}/file',
    scope: { ofRecords: 'write' },
    id: 'uploadImportFile',
    tag,
    summary: 'Upload the file of an import',
    description:
      'CSV with a header and at most 1,048,575 rows, at most 32 MiB, in UTF-8, UTF-16 or Windows-1252; commas, semicolons, tabs or bars. The answer says how it was read and what each column would become. Sent again, it replaces the file, as long as nothing was written from it; it needs no Idempotency-Key.',
    params,
    accepts: 'text/csv',
    bodyLimit: MAX_FILE,
    response: shown,
    handler: async (request) => {
      const row = await find(request, 'write')
      const { bytes, charset } = request.upload
      return presentImport(await receiveFile(request.tenant, row, bytes, charset))
    },
  }),
  route({
    method: 'POST',
    path: '/imports/{import_id}/start',
    scope: { ofRecords: 'write' },
    id: 'startImport',
    tag,
    summary: 'Start an import',
    description:
      'Rows are written 200 at a time; those that are wrong are left out and listed by GET …/errors, and so are those with a number that can mean two things, such as an amount of 1.250. After a dry run it may be started again.',
    params,
    body: startBody,
    response: shown,
    example: { mapping: { 'E-Mail': 'email', Notes: null }, dry_run: true },
    handler: async (request) => {
      const row = await find(request, 'write')
      const { params, body = {}, caller, tenant } = request
      const started = await tenant((tx) =>
        startImport(tx, params.import_id, body, (targets) => {
          requireScopes(caller, scopesOf(row.entity, targets))
        }),
      )
      return presentImport(started)
    },
  }),
  changing('stop', 'Stop an import', 'What it has written stays; resume goes on behind it.', stopImport),
  changing(
    'resume',
    'Resume an import',
    'Goes on behind the last row that was dealt with. It takes the scopes that the start took.',
    resumeImport,
    ({ entity, targets }) => scopesOf(entity, targets ?? {}),
  ),
  route({
    method: 'GET',
    path: '/imports/{import_id}/errors',
    scope: { ofRecords: 'read' },
    id: 'getImportErrors',
    tag,
    summary: 'Read the rows that were not imported',
    description:
      "CSV with the file's own columns and `error`, to be put right and imported again: `error` is left out then. What a row has beyond its columns stands behind `error`.",
    params,
    response: { status: 200, file: 'text/csv', description: 'The rows that failed' },
    handler: async (request) => {
      const row = await find(request, 'read')
      return { name: `import-${row.id}-errors.csv`, content: errorsFile(request.tenant, row) }
    },
  }),
]

function changing(
  name: 'stop' | 'resume',
  summary: string,
  description: string,
  change: typeof stopImport,
  scopes: (row: ImportRow) => Scope[] = () => [],
): Route {
  return route({
    method: 'POST',
    path: `/imports/{import_id}/${name}`,
    scope: { ofRecords: 'write' },
    id: `${name}Import`,
    tag,
    summary,
    description,
    params,
    response: shown,
    handler: async (request) => {
      requireScopes(request.caller, scopes(await find(request, 'write')))
      return presentImport(await request.tenant((tx) => change(tx, request.params.import_id)))
    },
  })
}

/** The import, if the caller may do this with records of its kind. Throws not_found, insufficient_scope. */
async function find(
  { params, caller, tenant }: Pick<Request, 'params' | 'caller' | 'tenant'>,
  level: 'read' | 'write',
): Promise<ImportRow> {
  const row = await tenant((tx) => getImport(tx, params.import_id))
  requireScopes(caller, [`${row.entity}:${level}` as Scope])
  return row
}

/** Beyond write on the kind itself: references link, and companies that are only named are made. */
function scopesOf(entity: EntityName, targets: Mapping): Scope[] {
  const fields = Object.fromEntries(Object.values(targets).map((name) => [name, name]))
  return [...linkScopes(entity, fields), ...(fields.company_name ? (['companies:write'] as const) : [])]
}

/** Throws validation_error for an upsert that does not say by what, or by what no record can be found. */
async function checkKey(tx: Tenant, { entity, mode, by }: z.output<typeof newImport>): Promise<void> {
  const issue = { loc: ['body', 'by'], type: 'invalid_value', ...(by === undefined ? {} : { input: by }) }
  const hint = `${entity} are found by ${upsertKeys(entity).join(', ')}, custom_fields.<name> of a unique definition`
  if (mode === 'create' && by !== undefined) throw invalid([{ ...issue, msg: 'is for upserts only' }])
  if (mode === 'create') return
  if (by === undefined) throw invalid([{ ...issue, msg: 'is required for an upsert', hint }])
  if (!isUpsertKey(entity, by)) throw invalid([{ ...issue, msg: `${entity} are not found by it`, hint }])
  await finderBy(tx, entity, by)
}
