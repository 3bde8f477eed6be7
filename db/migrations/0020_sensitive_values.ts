import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** The values of sensitive custom fields. Records have masks in their place. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table sensitive_values (
      organization_id uuid not null references organizations on delete cascade,
      record_id uuid not null,
      entity text not null,
      name text not null,
      -- what the record has, or has had, in place of the value
      mask text not null,
      value jsonb not null,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, record_id, mask)
    );
    -- the names of the sensitive fields: requests of incoming webhooks read them without the definitions
    alter table custom_field_definitions add column sensitive text[] not null default '{}';
  `)
  await protect(knex, 'sensitive_values')
}
