import type { Knex } from 'knex'
import { protect } from './protect.ts'

const RECORDS = ['contacts', 'companies', 'deals', 'tasks', 'notes', 'activities']

/** Which record a merged one went into, and an index by which the sweep finds what was deleted long ago. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table merged_records (
      organization_id uuid not null references organizations on delete cascade,
      -- the one that is gone
      id uuid not null,
      entity text not null,
      -- the one that it is in now: when that is merged too, the row follows
      merged_into uuid not null,
      merged_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );
    create index merged_records_into on merged_records (organization_id, merged_into);

    alter table record_history drop constraint record_history_action_check;
    alter table record_history add constraint record_history_action_check
      check (action in ('created', 'updated', 'deleted', 'restored', 'merged'));
    -- with 'merged': the record that went into this one
    alter table record_history add column merged_from uuid;
  `)
  await protect(knex, 'merged_records')
  for (const table of RECORDS)
    await knex.raw(`create index ${table}_deleted on ${table} (deleted_at) where deleted_at is not null`)
}

export async function down(knex: Knex): Promise<void> {
  for (const table of RECORDS) await knex.raw(`drop index ${table}_deleted`)
  await knex.raw(`
    drop table merged_records;
    delete from record_history where action = 'merged';
    alter table record_history drop column merged_from;
    alter table record_history drop constraint record_history_action_check;
    alter table record_history add constraint record_history_action_check
      check (action in ('created', 'updated', 'deleted', 'restored'));
  `)
}
