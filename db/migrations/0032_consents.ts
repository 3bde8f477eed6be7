import type { Knex } from 'knex'
import { recordTable } from './record-table.ts'

/** Consents of contacts. */
export async function up(knex: Knex): Promise<void> {
  await recordTable(
    knex,
    'consents',
    `contact_id uuid, purpose text not null, channel text not null, state text not null, stated_at timestamptz(3) not null,
     source text, text text, legal_basis text not null`,
    ['purpose', 'channel', 'state', 'legal_basis'],
    [['contact_id', 'consents_contact']],
  )
  await knex.raw(`
    create unique index consents_identity on consents (organization_id, contact_id, purpose, channel)
      where deleted_at is null;
    create index consents_restorable on consents (organization_id, created_at desc, id desc)
      where deleted_at is not null`)
}
