import { findCollection } from '../../db/knowledge/collections.ts'
import {
  addDocument,
  type Document,
  type DocumentValues,
  findDocument,
  type Split,
  updateDocument,
} from '../../db/knowledge/documents.ts'
import type { QueryVectors } from '../../db/knowledge/query-vectors.ts'
import { searchPassages } from '../../db/knowledge/search.ts'
import { parseQuery } from '../../db/model/knowledge/query.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Knowledge } from '../../workflows/effects/knowledge.ts'
import { type EffectHost, transactionOf } from './define.ts'
import { transactionsOf } from './transactions.ts'

/** The organization's knowledge base for nodes: the same queries as the API, with the run as actor. */
export function knowledgeOf(
  { db, queryVectors }: { db: Database | undefined; queryVectors: QueryVectors | undefined },
  host: EffectHost,
): Knowledge {
  const split: Split = (body, format) => host.compute('passagesOf', body, format)
  return {
    async search({ q, collection, tags, match, mode, limit }) {
      // A query without words, such as "???".
      if (!parseQuery(q)) return { passages: [], has_more: false }
      const transact = host.tx
        ? <T>(work: (tx: Tenant) => Promise<T>) => work(transactionOf(host))
        : transactionsOf(db, host)
      const among =
        collection === undefined ? undefined : await transact((tx) => findCollection(tx, collection))
      const search = { q, collection_id: among?.id, tags, match, mode }
      const vectors = await queryVectors?.of(search, host.organizationId, transact, host)
      const { data, has_more } = await transact((tx) =>
        searchPassages(tx, search, { limit, offset: 0 }, vectors),
      )
      return { passages: data.map(({ highlight: _, position: __, ...passage }) => passage), has_more }
    },
    async add(collection, values) {
      const tx = transactionOf(host)
      const { id } = await findCollection(tx, collection)
      const { document, created } = await host.once(
        'knowledge_document',
        (earlier) => replaced(tx, earlier, id, values),
        () => addDocument(tx, id, values, { split, replaceExisting: true }),
        (added) => added.document.id,
      )
      const { collection_id, external_id, title, passages, version } = document
      return { id: document.id, collection_id, external_id, title, passages, version, created }
    },
  }

  /** Updates the document that the same node of the run added before; undefined if it no longer exists. */
  async function replaced(
    tx: Tenant,
    earlier: string,
    collectionId: string,
    values: DocumentValues,
  ): Promise<{ document: Document; created: boolean } | undefined> {
    const found = await findDocument(tx, earlier)
    // Another collection or `external_id` means another document.
    if (found?.collection_id !== collectionId || found.external_id !== values.external_id) return undefined
    return { document: await updateDocument(tx, earlier, values, { split }), created: true }
  }
}
