import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** The embeddings of collections: how to make them, and the vectors of their passages. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table knowledge_embeddings (
      organization_id uuid not null references organizations on delete cascade,
      -- that of the collection
      id uuid not null,
      base_url text not null,
      model text not null,
      -- as asked for; null: as the model makes them
      dimensions integer,
      api_key_sealed text,
      -- increases with the model: vectors of an earlier one are not compared
      generation integer not null default 1,
      -- the length of the generation's vectors, once there is one
      vector_length integer,
      status text not null check (status in ('queued', 'running', 'completed', 'failed')),
      -- of its workflow: each is a workflow of its own
      starts integer not null default 1,
      -- increases with each change of a passage: the workflow ends only if it has seen the last one
      requested bigint not null default 1,
      error jsonb,
      started_at timestamptz(3),
      ended_at timestamptz(3),
      lease_until timestamptz,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, id),
      foreign key (organization_id, id) references knowledge_collections (organization_id, id) on delete cascade
    );
    create index knowledge_embeddings_queued on knowledge_embeddings (organization_id, id) where status = 'queued';
    create index knowledge_embeddings_running on knowledge_embeddings (updated_at) where status = 'running';

    create table knowledge_vectors (
      organization_id uuid not null references organizations on delete cascade,
      document_id uuid not null,
      position integer not null,
      collection_id uuid not null,
      generation integer not null,
      -- the signs of its numbers, by which a search selects the vectors that it compares
      signs bit varying not null,
      -- of length 1: numbers of 4 bytes, little-endian
      vector bytea not null,
      primary key (organization_id, document_id, position),
      foreign key (organization_id, document_id, position)
        references knowledge_passages (organization_id, document_id, position) on delete cascade
    );
    -- A scan of the signs does not read the vectors: they are in another table.
    alter table knowledge_vectors alter vector set storage external;
    alter table knowledge_vectors set (toast_tuple_target = 128);
    create index knowledge_vectors_collection on knowledge_vectors (organization_id, collection_id);
  `)
  for (const table of ['knowledge_embeddings', 'knowledge_vectors']) await protect(knex, table)
}
