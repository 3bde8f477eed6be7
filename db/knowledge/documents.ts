import { isDeepStrictEqual } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
import type { DocumentFormat, Language } from '../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { Passage } from '../model/knowledge/passages.ts'
import type { Page } from '../model/lists/page.ts'
import { requireVersion } from '../model/lists/version.ts'
import { sqlState, UNIQUE_VIOLATION } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { writePassages } from './index-passages.ts'

/** A document in a list, as in the API. */
export interface DocumentSummary {
  id: string
  collection_id: string
  external_id: string | null
  title: string
  format: DocumentFormat
  tags: string[]
  source_url: string | null
  /** The number of its passages, the units of search results. */
  passages: number
  version: number
  created_at: Date
  updated_at: Date
  created_by: Actor
  updated_by: Actor
}

export type Document = DocumentSummary & { body: string }

export type DocumentValues = Pick<
  Document,
  'external_id' | 'title' | 'body' | 'format' | 'tags' | 'source_url'
>
export type DocumentPatch = { [K in keyof DocumentValues]?: DocumentValues[K] | undefined }

/** Divides a text into passages. Throws `NeedsComputation` for a long text that must be divided in a thread first. */
export type Split = (body: string, format: DocumentFormat) => Passage[]

const SUMMARY = [
  'id',
  'collection_id',
  'external_id',
  'title',
  'format',
  'tags',
  'source_url',
  'passages',
  'version',
  'created_at',
  'updated_at',
  'created_by',
  'updated_by',
]
const COLUMNS = [...SUMMARY, 'body']
/** The members of a document that a search reads. */
const SEARCHED = ['title', 'body', 'format', 'tags'] as const

const documents = (tx: Tenant) => tx.trx('knowledge_documents').where({ organization_id: tx.organizationId })

/**
 * Adds a document. With `replaceExisting` it replaces the document of the collection with the same external_id;
 * replacing it with equal values changes nothing. Throws `not_found` for the collection; `conflict` for an external_id
 * that is taken, and above the limits of `KNOWLEDGE`.
 */
export async function addDocument(
  tx: Tenant,
  collectionId: string,
  values: DocumentValues,
  { split, replaceExisting }: { split: Split; replaceExisting: boolean },
): Promise<{ document: Document; created: boolean }> {
  const language = await lockLanguage(tx, collectionId)
  const passages = split(values.body, values.format)
  const id = uuidv7()
  const actor = JSON.stringify(tx.actor)
  const [row] = await tx
    .trx('knowledge_documents')
    .insert({
      organization_id: tx.organizationId,
      id,
      collection_id: collectionId,
      ...values,
      passages: passages.length,
      created_by: actor,
      updated_by: actor,
    })
    .onConflict(
      tx.trx.raw('(organization_id, collection_id, external_id) where external_id is not null') as never,
    )
    .ignore()
    .returning<Document[]>(COLUMNS)
  if (row) {
    await requireRoom(tx)
    await writePassages(tx, row, language, passages)
    return { document: row, created: true }
  }
  const existing = await idOfExternal(tx, { collection_id: collectionId, ...values })
  // The document was deleted since.
  if (!existing) return addDocument(tx, collectionId, values, { split, replaceExisting })
  if (!replaceExisting) throw await takenIn(tx, { collection_id: collectionId, ...values })
  return { document: await updateDocument(tx, existing.id, values, { split }), created: false }
}

/** Documents, newest first, without their texts. Throws `not_found` for the collection. */
export async function listDocuments(
  tx: Tenant,
  collectionId: string,
  { external_id, tags }: { external_id?: string | undefined; tags?: string[] | undefined },
  page: IdPage,
): Promise<Page<DocumentSummary>> {
  const collection = await tx
    .trx('knowledge_collections')
    .where({ organization_id: tx.organizationId, id: collectionId })
    .first('id')
  if (!collection) throw notFound('collection')
  const rows = documents(tx).where({ collection_id: collectionId }).select(SUMMARY)
  if (external_id !== undefined) rows.where({ external_id })
  if (tags) rows.whereRaw('tags @> ?::text[]', [tags])
  return pageById(tx, rows, page, { of: ['documents', collectionId, external_id, tags] })
}

export const findDocument = (tx: Tenant, id: string): Promise<Document | undefined> =>
  documents(tx).where({ id }).first<Document | undefined>(COLUMNS)

/** Throws `not_found`. */
export async function getDocument(tx: Tenant, id: string): Promise<Document> {
  const row = await findDocument(tx, id)
  if (!row) throw notFound('document')
  return row
}

/**
 * Changes a document. Its passages are rebuilt if the search reads a changed member. Equal values change nothing.
 * Throws `not_found`, `version_conflict`; `conflict` for an external_id that is taken, and above the limits.
 */
export async function updateDocument(
  tx: Tenant,
  id: string,
  patch: DocumentPatch,
  { split, accepted }: { split: Split; accepted?: readonly number[] | undefined },
): Promise<Document> {
  const language = await lockLanguageOf(tx, id)
  const before = await lockDocument(tx, id, accepted)
  const members = Object.entries(patch).filter(
    ([name, value]) => value !== undefined && !isDeepStrictEqual(value, before[name as keyof DocumentPatch]),
  )
  if (members.length === 0) return before
  const changed = Object.fromEntries(members) as DocumentPatch
  const next = { ...before, ...changed } as Document
  const passages = SEARCHED.some((name) => name in changed) ? split(next.body, next.format) : undefined
  const row = await savepoint(tx, (inner) =>
    update(inner, id, {
      ...changed,
      ...(passages ? { passages: passages.length } : {}),
      version: before.version + 1,
    }),
  ).catch(async (error: unknown) => {
    throw sqlState(error) === UNIQUE_VIOLATION ? await takenIn(tx, next) : error
  })
  if (passages) {
    if (passages.length > before.passages) await requireRoom(tx)
    await writePassages(tx, row, language, passages)
  }
  return row
}

async function update(
  tx: Tenant,
  id: string,
  values: DocumentPatch & { passages?: number; version: number },
): Promise<Document> {
  const [row] = await documents(tx)
    .where({ id })
    .update({ ...values, updated_at: tx.trx.fn.now(), updated_by: JSON.stringify(tx.actor) })
    .returning<Document[]>(COLUMNS)
  return row!
}

/** Throws `not_found`, `version_conflict`. */
export async function deleteDocument(
  tx: Tenant,
  id: string,
  accepted: readonly number[] | undefined,
): Promise<void> {
  await lockDocument(tx, id, accepted)
  await documents(tx).where({ id }).delete()
}

async function lockDocument(
  tx: Tenant,
  id: string,
  accepted: readonly number[] | undefined,
): Promise<Document> {
  const row = await documents(tx).where({ id }).forUpdate().first<Document | undefined>(COLUMNS)
  if (!row) throw notFound('document')
  requireVersion('document', row.version, accepted)
  return row
}

/** The language of a collection. Locks the collection against changes and deletion until the transaction ends. */
async function lockLanguage(tx: Tenant, collectionId: string): Promise<Language> {
  const row = await tx
    .trx('knowledge_collections')
    .where({ organization_id: tx.organizationId, id: collectionId })
    .forKeyShare()
    .first<{ language: Language } | undefined>('language')
  if (!row) throw notFound('collection')
  return row.language
}

/** The language of a document's collection. The collection is locked first, as by a change of its language. */
async function lockLanguageOf(tx: Tenant, id: string): Promise<Language> {
  const row = await documents(tx).where({ id }).first<{ collection_id: string } | undefined>('collection_id')
  if (!row) throw notFound('document')
  return lockLanguage(tx, row.collection_id)
}

type External = Pick<Document, 'collection_id' | 'external_id'>

const idOfExternal = (tx: Tenant, { collection_id, external_id }: External) =>
  documents(tx).where({ collection_id, external_id }).first<{ id: string } | undefined>('id')

async function takenIn(tx: Tenant, document: External) {
  const other = await idOfExternal(tx, document)
  return conflict(`another document of the collection has the external_id ${document.external_id}`, {
    param: 'external_id',
    candidates: other ? [other] : [],
    hint: 'send "replace_existing": true with a new document to replace it',
  })
}

/**
 * Throws `conflict` above the limits. Writes are not serialised, so concurrent ones may exceed the limits by their
 * number.
 */
async function requireRoom(tx: Tenant): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: { documents: number; passages: number }[] }>(
    'select count(*) as documents, sum(passages) as passages from knowledge_documents where organization_id = ?',
    [tx.organizationId],
  )
  const used = rows[0]!
  for (const what of ['documents', 'passages'] as const)
    if (Number(used[what]) > KNOWLEDGE[what])
      throw conflict(`the knowledge base of an organization has at most ${KNOWLEDGE[what]} ${what}`, {
        hint: 'delete documents that are no longer needed',
      })
}
