import type { Language } from '../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { conflict } from '../model/errors.ts'
import type { Passage } from '../model/knowledge/passages.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { requestEmbedding } from './embeddings.ts'

/** The members of a document that are indexed with each of its passages. */
interface Titled {
  id: string
  collection_id: string
  title: string
  tags: string[]
}

/** Without `<` and `>`: PostgreSQL does not index the text of tags. */
export const INDEXED = (text: string) => `translate(${text}, '<>', '  ')`

/** SQL: the text search vector of a passage. Weights: A title, B heading, C tags, D text. */
const searchOf = (language: string, title: string, tags: string, passage: string) =>
  [
    ['A', title],
    ['B', `${passage}.heading`],
    ['C', tags],
    ['D', `${passage}.text`],
  ]
    .map(([weight, text]) => `setweight(to_tsvector(${language}, ${INDEXED(text!)}), '${weight}')`)
    .join(' || ')

/** Replaces the passages of a document. */
export async function writePassages(
  tx: Tenant,
  { id, collection_id, title, tags }: Titled,
  language: Language,
  passages: readonly Passage[],
): Promise<void> {
  // First, as the workflow does, which then locks passages.
  await requestEmbedding(tx, collection_id)
  await tx.trx('knowledge_passages').where({ organization_id: tx.organizationId, document_id: id }).delete()
  await tx.trx.raw(
    `insert into knowledge_passages (organization_id, document_id, collection_id, position, heading, text, search)
     select :organizationId, :id, :collection_id, p.position, p.heading, p.text,
       ${searchOf('cast(:language as regconfig)', ':title', ':tags', 'p')}
     from jsonb_to_recordset(cast(:passages as jsonb)) as p (position integer, heading text, text text)`,
    {
      organizationId: tx.organizationId,
      id,
      collection_id,
      language,
      title,
      tags: tags.join(' | '),
      passages: JSON.stringify(passages.map((passage, position) => ({ position, ...passage }))),
    },
  )
}

/** Indexes the passages of a collection in another language. Throws `conflict` above `KNOWLEDGE.passagesToIndex`. */
export async function indexAgain(tx: Tenant, collectionId: string, language: Language): Promise<void> {
  const [{ passages } = { passages: 0 }] = await tx
    .trx('knowledge_documents')
    .where({ organization_id: tx.organizationId, collection_id: collectionId })
    .sum<{ passages: number | null }[]>({ passages: 'passages' })
  if ((passages ?? 0) > KNOWLEDGE.passagesToIndex)
    throw conflict(
      `the language can change while a collection has at most ${KNOWLEDGE.passagesToIndex} passages: it has ${passages}`,
      { param: 'language', hint: 'create a collection in the other language, and add the documents to it' },
    )
  await tx.trx.raw(
    `update knowledge_passages p
     set search = ${searchOf('cast(:language as regconfig)', 'd.title', "array_to_string(d.tags, ' | ')", 'p')}
     from knowledge_documents d
     where p.organization_id = :organizationId and d.organization_id = :organizationId
       and d.collection_id = :collectionId and p.document_id = d.id`,
    { organizationId: tx.organizationId, collectionId, language },
  )
}
