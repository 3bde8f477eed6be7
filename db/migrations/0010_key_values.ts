import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Values that workflows keep between runs. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table key_values (
      organization_id uuid not null references organizations on delete cascade,
      -- "C": keys are listed by their beginning
      key text not null collate "C",
      value jsonb not null,
      -- from then on the key is absent, also before it is purged; null: never
      expires_at timestamptz(3),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, key)
    );
    create index key_values_age on key_values (expires_at) where expires_at is not null;
  `)
  await protect(knex, 'key_values')
}
