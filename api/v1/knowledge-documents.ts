import { z } from 'zod'
import {
  addDocument,
  type Document,
  type DocumentSummary,
  deleteDocument,
  getDocument,
  listDocuments,
  updateDocument,
} from '../../db/knowledge/documents.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { DELETED_AT, deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
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

export const knowledgeDocumentRoutes: Route[] = [
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
