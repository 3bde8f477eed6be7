import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Workflows and their immutable versions. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table workflows (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      name text not null,
      description text,
      status text not null default 'DRAFT' check (status in ('DRAFT', 'active', 'inactive')),
      -- the newest
      version integer not null default 1,
      -- the one that triggers start; set by activation, unchanged while newer versions are saved
      active_version integer,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      -- the row stays for its runs: those in flight still need their plan
      deleted_at timestamptz(3),
      primary key (organization_id, id),
      check ((status = 'active') = (active_version is not null))
    );
    create index workflows_name on workflows (organization_id, name) where deleted_at is null;
    create index workflows_newest on workflows (organization_id, id desc) where deleted_at is null;

    create table workflow_versions (
      organization_id uuid not null,
      workflow_id uuid not null,
      version integer not null,
      -- the YAML that it was saved from; null where it came as a raw definition
      spec text,
      -- json, not jsonb: the order of nodes and of a switch's cases matters
      definition json not null,
      plan json not null,
      created_by json not null,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, workflow_id, version),
      foreign key (organization_id, workflow_id) references workflows on delete cascade
    );
  `)
  for (const table of ['workflows', 'workflow_versions']) await protect(knex, table)
}
