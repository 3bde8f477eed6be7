import type pg from 'pg'

/**
 * Fills the knowledge base of an organization with `passages` passages of 20 to a document, of 150 words each: `common`
 * is in all of them, `half` in every second, `rare` in one of a thousand. @returns the collection's id.
 */
export async function fillKnowledge(
  client: pg.Client,
  organizationId: string,
  passages: number,
): Promise<string> {
  await client.query('set session_replication_role = replica')
  const { rows } = await client.query(
    `insert into knowledge_collections (organization_id, id, name, language, created_by, updated_by)
     values ($1, gen_random_uuid(), 'Filled', 'english', '{}', '{}') returning id`,
    [organizationId],
  )
  const { id } = rows[0]
  await client.query(
    `create temp table texts as
       select t, string_agg('term' || (power(random(), 3) * 5000)::integer, ' ') as words
       from generate_series(1, 400) t, generate_series(1, 150) w group by t;
     create temp table vectors as select t, words, to_tsvector('english', words) as search from texts`,
  )
  await client.query(
    `insert into knowledge_documents (organization_id, id, collection_id, title, body, format, tags, passages,
       created_by, updated_by)
     select $1, ('019a0000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, $2, 'Title ' || i, 'x', 'text',
       case when i % 100 = 0 then '{billing}'::text[] else '{}' end, 20, '{}', '{}'
     from generate_series(0, $3::integer / 20 - 1) i`,
    [organizationId, id, passages],
  )
  await client.query(
    `insert into knowledge_passages (organization_id, document_id, collection_id, position, heading, text, search)
     select $1, ('019a0000-0000-7000-8000-' || lpad(to_hex(i / 20), 12, '0'))::uuid, $2, i % 20, '',
       'common ' || case when i % 2 = 0 then 'half ' else '' end || case when i % 1000 = 0 then 'rare ' else '' end || words,
       setweight(to_tsvector('english', 'Title'), 'A')
         || setweight(to_tsvector('english', 'common' || case when i % 2 = 0 then ' half' else '' end
         || case when i % 1000 = 0 then ' rare' else '' end) || search, 'D')
     from generate_series(0, $3::integer - 1) i join vectors on t = 1 + i % 400`,
    [organizationId, id, passages],
  )
  await client.query('drop table texts, vectors; set session_replication_role = origin')
  return id
}
