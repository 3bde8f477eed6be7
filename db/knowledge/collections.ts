import { v7 as uuidv7, validate } from 'uuid'
import type { Language } from '../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import { requireVersion } from '../model/lists/version.ts'
import { sqlState, UNIQUE_VIOLATION } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import type { SecretsKey } from '../process/seal.ts'
import {
  type Embedding,
  type EmbeddingConfig,
  embeddingsOf,
  removeEmbedding,
  setEmbedding,
} from './embeddings.ts'
import { indexAgain } from './index-passages.ts'

/** A collection of documents that are searched together, as in the API. */
export interface Collection {
  id: string
  name: string
  description: string | null
  /** The text search configuration of its documents. */
  language: Language
  embedding: Embedding | null
  documents: number
  version: number
  created_at: Date
  updated_at: Date
  created_by: Actor
  updated_by: Actor
}

export type CollectionValues = Pick<Collection, 'name' | 'description' | 'language'>
type Patch = { [K in keyof CollectionValues]?: CollectionValues[K] | undefined }

const COLUMNS = [
  'id',
  'name',
  'description',
  'language',
  'version',
  'created_at',
  'updated_at',
  'created_by',
  'updated_by',
]

const collections = (tx: Tenant) =>
  tx.trx('knowledge_collections').where({ organization_id: tx.organizationId })

/** Collections with their numbers of documents. */
const shown = (tx: Tenant) =>
  collections(tx).select([
    ...COLUMNS,
    tx.trx.raw(
      `(select count(*) from knowledge_documents d
        where d.organization_id = knowledge_collections.organization_id
          and d.collection_id = knowledge_collections.id) as documents`,
    ),
  ])

async function withEmbeddings(tx: Tenant, rows: Omit<Collection, 'embedding'>[]): Promise<Collection[]> {
  const found = await embeddingsOf(
    tx,
    rows.map(({ id }) => id),
  )
  return rows.map((row) => ({ ...row, embedding: found.get(row.id) ?? null }))
}

/** Throws `conflict` for a name that is taken, and above `KNOWLEDGE.collections`. */
export async function createCollection(tx: Tenant, values: CollectionValues): Promise<Collection> {
  const [others] = await collections(tx).count<{ count: number }[]>()
  if (others!.count >= KNOWLEDGE.collections)
    throw conflict(`the organization already has ${KNOWLEDGE.collections} collections`, {
      hint: 'use tags to divide a collection',
    })
  const actor = JSON.stringify(tx.actor)
  const id = uuidv7()
  await unlessTaken(tx, values.name, (inner) =>
    inner
      .trx('knowledge_collections')
      .insert({ organization_id: tx.organizationId, id, ...values, created_by: actor, updated_by: actor }),
  )
  return getCollection(tx, id)
}

/** Collections, newest first. @param name lists only the collection with this name, compared case-insensitively. */
export async function listCollections(
  tx: Tenant,
  name: string | undefined,
  page: IdPage,
): Promise<Page<Collection>> {
  const rows = shown(tx)
  if (name !== undefined) rows.whereRaw('name_lower = lower(?)', [name])
  const found = await pageById<Omit<Collection, 'embedding'>>(tx, rows, page, { of: ['collections', name] })
  return { ...found, data: await withEmbeddings(tx, found.data) }
}

/** Throws `not_found`. */
export async function getCollection(tx: Tenant, id: string): Promise<Collection> {
  const row = await shown(tx).where({ id }).first<Omit<Collection, 'embedding'> | undefined>()
  if (!row) throw notFound('collection')
  const [collection] = await withEmbeddings(tx, [row])
  return collection!
}

/** The collection with an id, or with a name, compared case-insensitively. Throws `not_found`. */
export async function findCollection(tx: Tenant, named: string): Promise<{ id: string; name: string }> {
  const query = validate(named)
    ? collections(tx).where({ id: named.toLowerCase() })
    : collections(tx).whereRaw('name_lower = lower(?)', [named])
  const row = await query.first<{ id: string; name: string } | undefined>('id', 'name')
  if (row) return row
  throw notFound(`collection ${named}`, 'GET /v1/knowledge/collections lists them')
}

/**
 * Changes a collection. A change of the language indexes its documents again. Throws `not_found`, `version_conflict`;
 * `conflict` for a name that is taken, and if it has too many passages to index again.
 */
export async function updateCollection(
  tx: Tenant,
  id: string,
  patch: Patch,
  accepted: readonly number[] | undefined,
): Promise<Collection> {
  const before = await lockCollection(tx, id, accepted)
  const members = Object.entries(patch).filter(
    ([name, value]) => value !== undefined && value !== before[name as keyof Patch],
  )
  if (members.length === 0) return getCollection(tx, id)
  const changed = Object.fromEntries(members) as Patch
  await unlessTaken(tx, patch.name ?? before.name, ({ trx }) =>
    trx('knowledge_collections')
      .where({ organization_id: tx.organizationId, id })
      .update({
        ...changed,
        version: before.version + 1,
        updated_at: tx.trx.fn.now(),
        updated_by: JSON.stringify(tx.actor),
      }),
  )
  if (changed.language) await indexAgain(tx, id, changed.language)
  return getCollection(tx, id)
}

/**
 * Sets how the passages of a collection are embedded; null: not at all. Throws `not_found`, `version_conflict`, and as
 * `setEmbedding`.
 */
export async function embedCollection(
  tx: Tenant,
  keys: SecretsKey,
  id: string,
  config: EmbeddingConfig | null,
  accepted: readonly number[] | undefined,
): Promise<Collection> {
  const { version } = await lockCollection(tx, id, accepted)
  await (config ? setEmbedding(tx, keys, id, config) : removeEmbedding(tx, id))
  await collections(tx)
    .where({ id })
    .update({
      version: version + 1,
      updated_at: tx.trx.fn.now(),
      updated_by: JSON.stringify(tx.actor),
    })
  return getCollection(tx, id)
}

/** Deletes a collection with its documents. Throws `not_found`, `version_conflict`. */
export async function deleteCollection(
  tx: Tenant,
  id: string,
  accepted: readonly number[] | undefined,
): Promise<void> {
  await lockCollection(tx, id, accepted)
  await collections(tx).where({ id }).delete()
}

/** Also excludes new documents, whose foreign keys lock the row. */
async function lockCollection(
  tx: Tenant,
  id: string,
  accepted: readonly number[] | undefined,
): Promise<CollectionValues & { version: number }> {
  const row = await collections(tx)
    .where({ id })
    .forUpdate()
    .first<(CollectionValues & { version: number }) | undefined>(COLUMNS)
  if (!row) throw notFound('collection')
  requireVersion('collection', row.version, accepted)
  return row
}

async function unlessTaken(
  tx: Tenant,
  name: string,
  write: (tx: Tenant) => PromiseLike<unknown>,
): Promise<void> {
  try {
    await savepoint(tx, async (inner) => void (await write(inner)))
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error
    const { id } = await findByName(tx, name)
    throw conflict(`there is already a collection named ${name}`, {
      param: 'name',
      candidates: id === undefined ? [] : [{ id, name }],
    })
  }
}

async function findByName(tx: Tenant, name: string): Promise<{ id?: string }> {
  return (await collections(tx).whereRaw('name_lower = lower(?)', [name]).first<{ id: string }>('id')) ?? {}
}
