import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Lists of records: static ones, and those of a filter. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table lists (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      entity text not null,
      name text not null,
      description text,
      type text not null check (type in ('static', 'filter')),
      -- of a filter: the parameters of the list of records, as sent and as parsed
      query jsonb,
      selection jsonb,
      -- whether members also change without a change of their record
      drifts boolean not null default false,
      member_count integer not null default 0,
      version integer not null default 1,
      created_by jsonb not null,
      updated_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      -- its members are removed before its row
      deleted_at timestamptz(3),
      -- when all records are compared next; null: only those that change
      due_at timestamptz(3),
      -- the last record that was compared
      after_id uuid,
      -- the end of the first comparison, which raises no events
      filled_at timestamptz(3),
      problem text,
      lease_until timestamptz(3),
      primary key (organization_id, id)
    );
    create index lists_entity on lists (organization_id, entity) where deleted_at is null;
    create index lists_due on lists (organization_id, due_at) where due_at is not null;

    create table list_members (
      organization_id uuid not null,
      list_id uuid not null,
      record_id uuid not null,
      -- false: the record is deleted, or came by a merge that workers have not seen yet
      entered boolean not null,
      primary key (organization_id, list_id, record_id),
      foreign key (organization_id, list_id) references lists on delete cascade
    );
    create index list_members_record on list_members (organization_id, record_id);

    -- events of records that workers compare with the lists of their kind
    create table list_changes (
      organization_id uuid not null references organizations on delete cascade,
      -- of the event
      id uuid not null,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    )`)
  for (const table of ['lists', 'list_members', 'list_changes']) await protect(knex, table)
}
