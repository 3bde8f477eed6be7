import { z } from 'zod'
import { getCollection } from '../../db/knowledge/collections.ts'
import {
  addDocument,
  type Document,
  type DocumentSummary,
  deleteDocument,
  getDocument,
  listDocuments,
  updateDocument,
} from '../../db/knowledge/documents.ts'
import { AppError, invalid } from '../../db/model/errors.ts'
import { FILE_TYPES, isFileType, typeOfName } from '../../db/model/knowledge/files/extract.ts'
import { documentFields } from '../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { DELETED_AT, deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { ANY } from '../http/upload.ts'
import { collectionParams } from './knowledge-collections.ts'
import {
  documentCreate,
  documentSchema,
  documentSummarySchema,
  documentUpdate,
  tagsParameter,
} from './knowledge-shapes.ts'
import { withETag } from './record-shapes.ts'

const tag = 'Knowledge base'
const ofCollection = {
  path: '/knowledge/collections/{collection_id}/documents',
  params: collectionParams,
  tag,
}
const byId = {
  path: '/knowledge/documents/{document_id}',
  params: z.object({ document_id: z.uuid().toLowerCase().describe('The id of the document.') }),
  tag,
}

const present = <T extends Document | DocumentSummary>(document: T) => ({
  object: 'knowledge_document' as const,
  ...document,
})

/** What a document that is made of a file gets besides its text. */
const ofFile = z.strictObject({
  title: documentFields.title
    .optional()
    .describe('The title. Default: that of the file, or else its name in the URL.'),
  tags: tagsParameter,
  external_id: documentFields.external_id.optional(),
  replace_existing: z
    .enum(['true', 'false'])
    .default('false')
    .describe('Whether it replaces the document of the collection with the same `external_id`.'),
})

interface FromFile {
  bytes: Buffer
  type: string
  /** Its name, if it has one. */
  name?: string | undefined
  sourceUrl: string | null
  given: z.output<typeof ofFile>
}

type OfCollection = RouteRequest<z.output<typeof collectionParams>>

/** Throws `not_found`: nothing is read or fetched for a collection that does not exist. */
const requireCollection = ({ tenant, params }: OfCollection) =>
  tenant((tx) => getCollection(tx, params.collection_id))

/** A server or client that is slow holds a bounded part of the memory. Throws `rate_limited`. */
async function inSlot<T>({ caller, deps }: RouteRequest, work: () => Promise<T>): Promise<T> {
  const release = deps.documents.take(caller.id, caller.organization.id)
  try {
    return await work()
  } finally {
    release()
  }
}

/** Adds the text of a file as a document. */
async function addFile(
  { caller, deps, params, tenant, setHeader }: OfCollection,
  { bytes, type, name, sourceUrl, given }: FromFile,
) {
  if (!isFileType(type))
    throw new AppError(
      'unsupported_media_type',
      `files of the type ${type.slice(0, 100) || '(none)'} are not read`,
      {
        hint: `send one of ${Object.keys(FILE_TYPES).join(', ')}`,
      },
    )
  const { body, format, title: ofFile } = await deps.compute.extract(caller.organization.id, bytes, type)
  const title = (given.title ?? ofFile ?? name)?.slice(0, KNOWLEDGE.title)
  if (!title)
    throw invalid([
      {
        loc: ['query', 'title'],
        msg: 'is required: the file has no title',
        type: 'missing',
        hint: 'add ?title=…',
      },
    ])
  const { tags = [], external_id = null, replace_existing } = given
  const values = { title, body, format, tags, source_url: sourceUrl, external_id }
  const { document } = await deps.compute.withPassages(caller.organization.id, (split) =>
    tenant((tx) =>
      addDocument(tx, params.collection_id, values, { split, replaceExisting: replace_existing === 'true' }),
    ),
  )
  return withETag(setHeader, present(document))
}

export const knowledgeDocumentRoutes: Route[] = [
  route({
    ...ofCollection,
    path: `${ofCollection.path}/upload`,
    method: 'POST',
    scope: 'knowledge:write',
    id: 'uploadKnowledgeDocument',
    grows: true,
    summary: 'Add a file to a collection',
    description: `The body is the file: a PDF, a Word document (.docx), Markdown, HTML or text in UTF-8, of at most ${KNOWLEDGE.fileBytes} bytes. Its text becomes a document; the file itself is not kept. Scans and encrypted files have no text. Each API process takes four documents of an organization at once; further ones are answered with 429.`,
    query: ofFile,
    accepts: ANY,
    bodyLimit: KNOWLEDGE.fileBytes,
    response: { status: 201, schema: documentSchema },
    etag: true,
    handler: (request) =>
      inSlot(request, async () => {
        await requireCollection(request)
        const chunks: Buffer[] = []
        for await (const chunk of request.upload.bytes) chunks.push(chunk)
        const { type } = request.upload
        return addFile(request, { bytes: Buffer.concat(chunks), type, sourceUrl: null, given: request.query })
      }),
  }),
  route({
    ...ofCollection,
    path: `${ofCollection.path}/fetch`,
    method: 'POST',
    scope: ['knowledge:write', 'webhooks:write'],
    id: 'fetchKnowledgeDocument',
    grows: true,
    summary: 'Add a document from a URL',
    description:
      'Fetches a file or a page once and adds its text, as an upload does; `source_url` is its URL. It sends a request to that server, so it needs `webhooks:write` besides. At most four at once, as uploads.',
    body: z.strictObject({
      url: documentFields.source_url.describe('The http or https URL of the file or page.'),
      title: ofFile.shape.title,
      tags: documentFields.tags.optional(),
      external_id: documentFields.external_id.optional(),
      replace_existing: z.boolean().default(false),
    }),
    response: { status: 201, schema: documentSchema },
    example: { url: 'https://help.example.com/payments.pdf', title: 'Payments', tags: ['billing'] },
    etag: true,
    handler: async (request) => {
      const { url, replace_existing, ...given } = request.body
      const { signal, deps } = request
      await requireCollection(request)
      return inSlot(request, async () => {
        const limits = { maxBytes: KNOWLEDGE.fileBytes, timeoutMs: 15_000 }
        const fetched = await deps.fetchFile(url, { ...limits, signal })
        const name = new URL(fetched.url).pathname.split('/').findLast((part) => part !== '')
        return addFile(request, {
          bytes: fetched.bytes,
          type: isFileType(fetched.type) ? fetched.type : (typeOfName(name ?? '') ?? fetched.type),
          name,
          sourceUrl: url,
          given: { ...given, replace_existing: replace_existing ? 'true' : 'false' },
        })
      })
    },
  }),
  route({
    ...ofCollection,
    method: 'GET',
    scope: 'knowledge:read',
    id: 'listKnowledgeDocuments',
    summary: 'List the documents of a collection',
    description: 'Newest first, without their texts.',
    query: z.strictObject({
      ...pageControls,
      external_id: z.string().trim().max(255).optional().describe('The document with this external_id.'),
      tags: tagsParameter,
    }),
    response: { status: 200, schema: listEnvelope(documentSummarySchema, 'KnowledgeDocument') },
    handler: ({ params, query, tenant }) =>
      tenant(async (tx) => {
        const page = await listDocuments(tx, params.collection_id, query, {
          ...query,
          offset: offsetOf(query),
        })
        return presentList({ ...page, data: page.data.map(present) })
      }),
  }),
  route({
    ...ofCollection,
    method: 'POST',
    scope: 'knowledge:write',
    id: 'createKnowledgeDocument',
    grows: true,
    summary: 'Add a document to a collection',
    description: `It is immediately searchable. It is divided at its headings and paragraphs into passages of at most ${KNOWLEDGE.passage} characters. To keep a copy of another system up to date, send its id as \`external_id\` and \`"replace_existing": true\`. An organization has at most ${KNOWLEDGE.documents} documents and ${KNOWLEDGE.passages} passages.`,
    body: documentCreate,
    response: { status: 201, schema: documentSchema },
    example: {
      title: 'Payments',
      body: '# Refunds\n\nRefunds take five business days.\n\n# Invoices\n\nInvoices are sent by email.',
      format: 'markdown',
      tags: ['billing'],
      source_url: 'https://help.example.com/payments',
      external_id: 'payments',
    },
    etag: true,
    handler: async (request) => {
      const { replace_existing: replaceExisting, ...values } = request.body
      const { caller, deps, params, tenant } = request
      const { document } = await deps.compute.withPassages(caller.organization.id, (split) =>
        tenant((tx) => addDocument(tx, params.collection_id, values, { split, replaceExisting })),
      )
      return withETag(request.setHeader, present(document))
    },
  }),
  route({
    ...byId,
    method: 'GET',
    scope: 'knowledge:read',
    id: 'getKnowledgeDocument',
    summary: 'Retrieve a document',
    response: { status: 200, schema: documentSchema },
    etag: true,
    handler: async ({ params, tenant, setHeader }) =>
      withETag(setHeader, present(await tenant((tx) => getDocument(tx, params.document_id)))),
  }),
  route({
    ...byId,
    method: 'PATCH',
    scope: 'knowledge:write',
    id: 'updateKnowledgeDocument',
    grows: true,
    summary: 'Update a document',
    description:
      'Absent members are unchanged, `null` clears. Equal values change nothing, not even the version.',
    body: documentUpdate,
    response: { status: 200, schema: documentSchema },
    example: { tags: ['billing', 'refunds'] },
    etag: true,
    ifMatch: true,
    handler: async (request) => {
      const accepted = ifMatch(request.headers)
      const { caller, deps, params, body, tenant } = request
      const updated = await deps.compute.withPassages(caller.organization.id, (split) =>
        tenant((tx) => updateDocument(tx, params.document_id, body, { split, accepted })),
      )
      return withETag(request.setHeader, present(updated))
    },
  }),
  route({
    ...byId,
    method: 'DELETE',
    scope: 'knowledge:write',
    id: 'deleteKnowledgeDocument',
    summary: 'Delete a document',
    description: 'Deletes it permanently.',
    response: deletion('knowledge_document', { id: z.uuid(), ...DELETED_AT }),
    ifMatch: true,
    handler: async ({ params: { document_id: id }, headers, tenant }) => {
      const accepted = ifMatch(headers)
      await tenant((tx) => deleteDocument(tx, id, accepted))
      return { object: 'knowledge_document', id, deleted: true, deleted_at: new Date().toISOString() }
    },
  }),
]
