import type { Knex } from 'knex'
import { protect } from './protect.ts'
import { searchView } from './search-view.ts'

/** The knowledge base: collections of documents, searched by passage. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table knowledge_collections (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      name text not null,
      name_lower text generated always as (lower(name)) stored,
      description text,
      -- a text search configuration, not regconfig: pg_upgrade refuses tables with object ids
      language text not null,
      version integer not null default 1,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      created_by jsonb not null,
      updated_by jsonb not null,
      primary key (organization_id, id)
    );
    create unique index knowledge_collections_name on knowledge_collections (organization_id, name_lower);

    create table knowledge_documents (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      collection_id uuid not null,
      external_id text,
      title text not null,
      -- as it was given
      body text not null,
      format text not null check (format in ('text', 'markdown', 'html')),
      tags text[] not null,
      source_url text,
      passages integer not null,
      version integer not null default 1,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      created_by jsonb not null,
      updated_by jsonb not null,
      primary key (organization_id, id),
      foreign key (organization_id, collection_id)
        references knowledge_collections (organization_id, id) on delete cascade
    );
    create unique index knowledge_documents_external_id
      on knowledge_documents (organization_id, collection_id, external_id) where external_id is not null;
    -- also counts the documents and passages of an organization
    create index knowledge_documents_collection
      on knowledge_documents (organization_id, collection_id, id) include (passages);

    -- The parts of a document's text, in its order.
    create table knowledge_passages (
      organization_id uuid not null references organizations on delete cascade,
      document_id uuid not null,
      position integer not null,
      -- that of the document
      collection_id uuid not null,
      -- the headings above the passage
      heading text not null,
      text text not null,
      -- in the language of the collection; weights: A title, B heading, C tags, D text
      search tsvector not null,
      primary key (organization_id, document_id, position),
      foreign key (organization_id, document_id)
        references knowledge_documents (organization_id, id) on delete cascade
    );
    -- Rows of some 4 KB are neither compressed nor moved to another table, from which each call of a ranking function would
    -- read them: 20,000 passages are ranked by four words in 60 ms instead of 1,070.
    alter table knowledge_passages alter search set storage main, alter text set storage main;
    alter table knowledge_passages set (toast_tuple_target = 8160);
    create index knowledge_passages_search on knowledge_passages using gin (organization_id, search);
  `)
  for (const table of ['knowledge_collections', 'knowledge_documents', 'knowledge_passages'])
    await protect(knex, table)
  await searchView(knex, 'knowledge_passages')
}
