import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Imports and exports of records as CSV: the jobs, and their files in pieces that any process can read. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table imports (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      entity text not null,
      mode text not null check (mode in ('create', 'upsert')),
      -- the field by which an upsert finds records
      upsert_by text,
      dry_run boolean not null,
      -- as requested; null: detected from the file
      delimiter text,
      encoding text,
      -- column to field, or to null, as requested; wins over the proposal
      mapping jsonb not null default '{}',
      -- column to its formats of numbers and dates, and shared signs to their currencies, as requested
      formats jsonb not null default '{}',
      currencies jsonb not null default '{}',
      -- of times without an offset; null: that of the organization
      time_zone text,
      -- size, rows, encoding and columns, detected by the upload
      file jsonb,
      -- the upload whose pieces are the file; each upload has an id of its own
      upload_id uuid,
      -- 'queued' is the outbox
      status text not null
        check (status in ('created', 'ready', 'queued', 'running', 'stopped', 'completed', 'failed')),
      -- decided by the start: a target, or null, for each column
      targets jsonb,
      -- how often it was started or resumed; each start is another Temporal workflow
      starts integer not null default 0,
      -- who started it: the author of what it writes
      actor jsonb,
      -- its progress: behind the last row that was processed
      next_byte bigint not null default 0,
      next_line integer not null default 1,
      rows_read integer not null default 0,
      rows_created integer not null default 0,
      rows_updated integer not null default 0,
      rows_skipped integer not null default 0,
      rows_failed integer not null default 0,
      -- why it failed
      error jsonb,
      -- a relay is starting it until then
      lease_until timestamptz(3),
      created_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      started_at timestamptz(3),
      ended_at timestamptz(3),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );
    create index imports_queue on imports (organization_id, id) where status = 'queued';
    create index imports_files on imports (updated_at) where upload_id is not null;
    create index imports_upload on imports (organization_id, upload_id) where upload_id is not null;
    create index imports_busy on imports (organization_id, updated_at) where status = 'running';

    -- Files in UTF-8, in pieces of one size.
    create table import_pieces (
      organization_id uuid not null references organizations on delete cascade,
      upload_id uuid not null,
      piece integer not null,
      bytes bytea not null,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, upload_id, piece)
    );
    -- finds uploads by their age: each has one first piece
    create index import_pieces_age on import_pieces (created_at) where piece = 0;

    -- Rows that were not imported.
    create table import_errors (
      organization_id uuid not null,
      import_id uuid not null,
      row_number integer not null,
      line integer not null,
      -- one for each problem: {column, message}
      issues jsonb not null,
      cells jsonb not null,
      primary key (organization_id, import_id, row_number),
      foreign key (organization_id, import_id) references imports on delete cascade
    );

    -- Unique values of the records that a dry run created and rolled back, so that later rows conflict with them.
    create table import_keys (
      organization_id uuid not null,
      import_id uuid not null,
      -- SHA-256 of the field and the value
      key bytea not null,
      -- the record that was created and rolled back
      record_id uuid not null,
      primary key (organization_id, import_id, key),
      foreign key (organization_id, import_id) references imports on delete cascade
    );

    create table exports (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      entity text not null,
      -- the parameters of the list, as sent and as parsed
      query jsonb not null,
      list_query jsonb not null,
      -- the requested fields; null: all
      fields text[],
      bom boolean not null,
      status text not null check (status in ('queued', 'running', 'completed', 'failed', 'expired')),
      -- decided by the start
      columns text[],
      -- its progress
      cursor text,
      pieces integer not null default 0,
      rows integer not null default 0,
      bytes bigint not null default 0,
      error jsonb,
      -- the queue that starts imports starts exports too, and counts starts; an export is started once
      starts integer not null default 1,
      -- a relay is starting it until then
      lease_until timestamptz(3),
      created_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      started_at timestamptz(3),
      ended_at timestamptz(3),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );
    create index exports_queue on exports (organization_id, id) where status = 'queued';
    create index exports_files on exports (ended_at) where pieces > 0;
    create index exports_busy on exports (organization_id, updated_at) where status = 'running';

    create table export_pieces (
      organization_id uuid not null,
      export_id uuid not null,
      piece integer not null,
      bytes bytea not null,
      primary key (organization_id, export_id, piece),
      foreign key (organization_id, export_id) references exports on delete cascade
    );
  `)
  for (const table of [
    'imports',
    'import_pieces',
    'import_errors',
    'import_keys',
    'exports',
    'export_pieces',
  ])
    await protect(knex, table)
}
