import { z } from 'zod'
import { errorsFile } from '../../db/imports/errors-file.ts'
import { createImport, getImport, type ImportRow, listImports } from '../../db/imports/imports.ts'
import { resumeImport, startImport, stopImport, wasStarted } from '../../db/imports/state.ts'
import { receiveFile } from '../../db/imports/upload.ts'
import { conflict, invalid } from '../../db/model/errors.ts'
import { linkTargets, type Mapping } from '../../db/model/imports/targets.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { isUpsertKey, upsertKeys } from '../../db/model/records/upsert-keys.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { JOB_DAYS } from '../../db/records/bulk/jobs.ts'
import { finderBy } from '../../db/records/find-by-key.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { allows, type Scope } from '../http/scopes.ts'
import { undo, undoOfImport } from './bulk.ts'
import { importSchema, newImport, presentImport, startBody } from './import-shapes.ts'
import { linkScopes } from './link-scopes.ts'

const params = z.object({ import_id: z.uuid().toLowerCase() })
type Request = RouteRequest<z.output<typeof params>>

const MAX_FILE = 32 * 1024 * 1024
const tag = 'Imports'
const response = { status: 200, schema: importSchema } as const

/** Imports of CSV files: create, upload, check the mapping, start. */
export const importRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/imports',
    scope: { ofRecords: 'read' },
    id: 'listImports',
    tag,
    summary: 'List imports',
    description: 'Lists the imports of the kinds that the key can read, newest first.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(importSchema) },
    handler: async ({ query, caller, tenant }) => {
      const readable = kindNames.filter((kind) => allows(caller.scopes, `${kind}:read`))
      const page = await tenant((tx) => listImports(tx, readable, { ...query, offset: offsetOf(query) }))
      return presentList({ ...page, data: page.data.map(presentImport) })
    },
  }),
  route({
    method: 'POST',
    path: '/imports',
    scope: { ofRecords: 'write' },
    id: 'createImport',
    grows: true,
    tag,
    summary: 'Create an import',
    description:
      'Creates an import. Next: upload the file, check the proposed mapping, start it (optionally with `dry_run` first).',
    body: newImport,
    response: { status: 201, schema: importSchema },
    example: { entity: 'contacts', mode: 'upsert', by: 'email' },
    handler: async ({ body, requireScopes, tenant }) => {
      requireScopes([`${body.entity}:write`])
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
    summary: 'Retrieve an import',
    params,
    response,
    handler: async (request) => presentImport(await find(request, 'read')),
  }),
  route({
    method: 'PUT',
    path: '/imports/{import_id}/file',
    scope: { ofRecords: 'write' },
    id: 'uploadImportFile',
    grows: true,
    tag,
    summary: 'Upload the file of an import',
    description:
      'Accepts CSV with a header, at most 1,048,575 rows and 32 MiB, in UTF-8, UTF-16 or Windows-1252, delimited by commas, semicolons, tabs or vertical bars. The response has the detected format and the proposed field of each column. Until a row is imported, another upload replaces the file.',
    params,
    accepts: 'text/csv',
    bodyLimit: MAX_FILE,
    response,
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
    grows: true,
    tag,
    summary: 'Start an import',
    description:
      'Writes the rows in batches of 200. Invalid rows, and rows with an ambiguous number such as `1.250`, are skipped and listed by `GET …/errors`. An import can be started again after a dry run.',
    params,
    body: startBody,
    response,
    example: { mapping: { first_name: 'first_name' }, dry_run: false },
    handler: async (request) => {
      const row = await find(request, 'write')
      const { params, body = {}, requireScopes, tenant } = request
      const started = await tenant((tx) =>
        startImport(tx, params.import_id, body, (targets) => {
          requireScopes(scopesOf(row.entity, targets))
        }),
      )
      return presentImport(started)
    },
  }),
  changing(
    'stop',
    'Stop an import',
    'Stops the import. Written rows remain; resume continues after them.',
    stopImport,
  ),
  changing(
    'resume',
    'Resume an import',
    'Continues after the last processed row. Needs the scopes that the start needed.',
    resumeImport,
    ({ entity, targets }) => scopesOf(entity, targets ?? {}),
  ),
  route({
    method: 'POST',
    path: '/imports/{import_id}/undo',
    scope: { ofRecords: 'write' },
    id: 'undoImport',
    grows: true,
    tag,
    summary: 'Undo an import',
    description: `Deletes the records that the import created, with the companies that it created by name, and gives the
fields that it changed their former values, as a bulk job. Records that were changed or associated since are among its
\`refusals\`, and stay as they are. Without \`confirm: true\` the response is a preview. Within ${JOB_DAYS} days of the end.`,
    params,
    body: undoOfImport.body,
    response: { status: 201, schema: undoOfImport.schema, preview: undoOfImport.preview },
    example: { confirm: true },
    handler: async (request) => {
      const row = await find(request, 'write')
      if (row.dry_run) throw conflict('a dry run has written nothing')
      if (!wasStarted(row)) throw conflict('the import was not started')
      return undo(request, row)
    },
  }),
  route({
    method: 'GET',
    path: '/imports/{import_id}/errors',
    scope: { ofRecords: 'read' },
    id: 'getImportErrors',
    tag,
    summary: 'Download the failed rows of an import',
    description:
      'Returns CSV with the columns of the file and `error`, to be corrected and imported again; an import ignores `error`. Cells beyond the header follow `error`.',
    params,
    response: { status: 200, file: 'text/csv', description: 'The failed rows.' },
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
    ...(name === 'resume' && { grows: true as const }),
    tag,
    summary,
    description,
    params,
    response,
    handler: async (request) => {
      request.requireScopes(scopes(await find(request, 'write')))
      return presentImport(await request.tenant((tx) => change(tx, request.params.import_id)))
    },
  })
}

/** The import, if the caller has `level` on its kind. Throws not_found, insufficient_scope. */
async function find(
  { params, requireScopes, tenant }: Pick<Request, 'params' | 'requireScopes' | 'tenant'>,
  level: 'read' | 'write',
): Promise<ImportRow> {
  const row = await tenant((tx) => getImport(tx, params.import_id))
  requireScopes([`${row.entity}:${level}` as Scope])
  return row
}

/**
 * The scopes that an import needs besides write on the kind: for records that it links, and companies that it creates.
 */
function scopesOf(kind: KindName, targets: Mapping): Scope[] {
  const fields = Object.fromEntries(Object.values(targets).map((name) => [name, name]))
  const associations = linkTargets(kind).flatMap(({ name, link }) =>
    fields[name] ? { object: link!.kind } : [],
  )
  return linkScopes(kind, { ...fields, associations })
}

/** Throws validation_error for an upsert without a valid key. */
async function checkKey(tx: Tenant, { entity, mode, by }: z.output<typeof newImport>): Promise<void> {
  const issue = { loc: ['body', 'by'], type: 'invalid_value', ...(by === undefined ? {} : { input: by }) }
  const hint = `upsert keys of ${entity}: id, ${upsertKeys(entity).join(', ')}, unique custom_fields.<name>`
  if (mode === 'create' && by !== undefined) throw invalid([{ ...issue, msg: 'is only for upserts' }])
  if (mode === 'create') return
  if (by === undefined) throw invalid([{ ...issue, msg: 'is required for an upsert', hint }])
  if (by !== 'id' && !isUpsertKey(entity, by))
    throw invalid([{ ...issue, msg: `is not an upsert key of ${entity}`, hint }])
  await finderBy(tx, entity, by)
}
