import { z } from 'zod'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { actor } from '../../db/model/records/schemas.ts'
import { getRecord } from '../../db/records/read.ts'
import {
  attachFile,
  deleteFile,
  type FileRow,
  getFile,
  listFiles,
  storeFiles,
} from '../../db/stored-files/files.ts'
import { FILE_NAME_RULE, isFileName } from '../../workflows/shared/files.ts'
import { FILES } from '../../workflows/shared/limits.ts'
import { deletion } from '../http/deletion.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import type { Scope } from '../http/scopes.ts'
import { ANY } from '../http/upload.ts'
import { kindParams, recordParams } from './record-shapes.ts'

const tag = 'Files'
const ofRecord = recordParams.extend(kindParams.shape)
const fileParams = z.object({ file_id: z.uuid().toLowerCase() })

export const fileSchema = z
  .object({
    object: z.literal('file'),
    id: z.uuid(),
    name: z.string(),
    content_type: z.string(),
    size: z.int().describe('In bytes.'),
    sha256: z.string().describe('The hash of the content, in hexadecimal.'),
    entity: z.enum(kindNames).describe('The kind of the record that it is attached to.'),
    record_id: z.uuid(),
    origin: z.enum(['upload', 'run']),
    run_id: z.uuid().nullable().describe('The run that received it, until it is purged; null for an upload.'),
    created_by: actor,
    created_at: z.date(),
  })
  .meta({ id: 'File' })

/** Files of records. Those of runs that no record has are read with the scope of their run. */
export const fileRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/objects/{entity}/{entity_id}/files',
    scope: ({ entity }) => [`${entity}:read`],
    id: 'listFiles',
    tag,
    summary: 'List the files of a record',
    description: 'Lists the files that are attached to the record, newest first.',
    params: ofRecord,
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(fileSchema) },
    handler: async ({ params: { entity, entity_id }, query, tenant }) => {
      const page = await tenant((tx) =>
        listFiles(tx, entity, entity_id, { ...query, offset: offsetOf(query) }),
      )
      return presentList({ ...page, data: page.data.map(presentFile) })
    },
  }),
  route({
    method: 'POST',
    path: '/objects/{entity}/{entity_id}/files',
    scope: ({ entity }) => [`${entity}:write`],
    id: 'uploadFile',
    grows: true,
    tag,
    summary: 'Attach a file to a record',
    description:
      'The body is the file itself, of any type except forms. The same content under the same name is kept once: a repeated upload returns the file that is there. Files count against `file_bytes` of the plan, each with at least 4,096 bytes.',
    params: ofRecord,
    query: z.strictObject({
      name: z
        .string()
        .refine(isFileName, FILE_NAME_RULE)
        .describe('The name of the file, such as `invoice.pdf`.'),
    }),
    accepts: ANY,
    bodyLimit: FILES.bytes,
    response: { status: 201, schema: fileSchema },
    handler: async ({ params: { entity, entity_id }, query: { name }, upload, caller, deps, tenant }) => {
      await tenant((tx) => getRecord(tx, entity, entity_id))
      const given = { name, content_type: upload.type, bytes: upload.length, run_id: null }
      const received = await deps.files.receive(caller.organization.id, tenant, given, upload.bytes)
      const row = await tenant(async (tx) => {
        await storeFiles(tx, [received])
        const attached = await attachFile(tx, received.id, entity, entity_id)
        if (attached.id !== received.id) await deleteFile(tx, received.id)
        return attached
      })
      return presentFile(row)
    },
  }),
  route({
    method: 'GET',
    path: '/files/{file_id}',
    scope: { ofRecords: 'read' },
    id: 'downloadFile',
    tag,
    summary: 'Download a file',
    description:
      'Returns the content with its own Content-Type, always as a download. A file that a run received and that no record has needs `workflows:run`.',
    params: fileParams,
    response: { status: 200, file: ANY, description: 'The content of the file.' },
    handler: async (request) => {
      const row = await find(request, 'read')
      return {
        name: row.name,
        content: await request.deps.files.read(request.caller.organization.id, row),
        is: { type: row.content_type, length: row.size },
      }
    },
  }),
  route({
    method: 'DELETE',
    path: '/files/{file_id}',
    scope: { ofRecords: 'write' },
    id: 'deleteFile',
    tag,
    summary: 'Delete a file',
    description:
      'A file cannot be restored. A file that a run received and that no record has needs `workflows:run`.',
    params: fileParams,
    response: deletion('file'),
    handler: async (request) => {
      const { id } = await find(request, 'write')
      await request.tenant((tx) => deleteFile(tx, id))
      return { object: 'file', id, deleted: true }
    },
  }),
]

/** The file, if the caller may read or write its record or its run. Throws not_found, insufficient_scope. */
async function find(
  { params, requireScopes, tenant }: RouteRequest<z.output<typeof fileParams>>,
  level: 'read' | 'write',
): Promise<FileRow> {
  const row = await tenant((tx) => getFile(tx, params.file_id))
  requireScopes([row.entity ? (`${row.entity}:${level}` as Scope) : 'workflows:run'])
  return row
}

/** A file of a record as the API shows it. */
export function presentFile(row: FileRow): z.input<typeof fileSchema> {
  const { id, name, content_type, size, origin, run_id, created_by, created_at } = row
  return {
    object: 'file',
    id,
    name,
    content_type,
    size,
    sha256: row.sha256.toString('hex'),
    entity: row.entity!,
    record_id: row.record_id!,
    origin,
    run_id,
    created_by,
    created_at,
  }
}
