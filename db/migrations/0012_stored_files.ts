import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Files of records and runs. Their contents are outside of the database, see db/process/storage/. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table files (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      name text not null,
      content_type text not null,
      -- of the content; while it is received, the bytes that are reserved for it
      size bigint not null,
      -- null while the content is received
      sha256 bytea,
      -- the key of the content, sealed: its envelope names the key that sealed it
      key_sealed text not null,
      origin text not null check (origin in ('upload', 'run')),
      -- 'uploading': its content may be incomplete, and nobody can read it
      status text not null check (status in ('uploading', 'stored')),
      -- the run whose node received it; null once the run is purged
      run_id uuid,
      -- the record that it is attached to: it is then deleted with the record instead of the run
      entity text,
      record_id uuid,
      created_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, id),
      foreign key (organization_id, run_id) references runs on delete set null (run_id),
      check ((entity is null) = (record_id is null))
    );
    -- the bytes of an organization
    create index files_size on files (organization_id) include (size, status, created_at);
    create index files_run on files (organization_id, run_id) where run_id is not null;
    -- the same content under the same name is attached to a record once
    create unique index files_record on files (organization_id, entity, record_id, name, sha256)
      where record_id is not null;
    create index files_abandoned on files (created_at) where status = 'uploading';
    create index files_loose on files (created_at) where status = 'stored' and run_id is null and record_id is null;

    -- Files whose rows are deleted, and whose contents are not yet. Without a reference to the organization, because it
    -- may be deleted as well.
    create table deleted_files (
      organization_id uuid not null,
      id uuid not null,
      -- a worker is deleting the content until then
      lease_until timestamptz(3),
      deleted_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );
    create index deleted_files_queue on deleted_files (deleted_at);

    -- However a row is deleted, its content follows.
    create function note_deleted_file() returns trigger language plpgsql as $$ begin
      insert into deleted_files (organization_id, id) values (old.organization_id, old.id) on conflict do nothing;
      return null;
    end $$;
    create trigger files_deleted after delete on files for each row execute function note_deleted_file();
  `)
  for (const table of ['files', 'deleted_files']) await protect(knex, table)
}
