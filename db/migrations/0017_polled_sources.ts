import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Sources of incoming webhooks that are polled, and the items that were taken from them. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table incoming_webhooks
      -- what is polled (\`Source\`), with the names of its headers, whose values are sealed
      add column source jsonb,
      add column source_headers_sealed text,
      -- where the polls are (\`PollState\`)
      add column source_state jsonb,
      add column next_poll_at timestamptz(3),
      -- a worker is polling until then
      add column poll_lease_until timestamptz(3),
      add column polled_at timestamptz(3),
      -- why the last poll failed
      add column poll_problem text
  `)
  await knex.raw(`
    create table incoming_items (
      organization_id uuid not null,
      webhook_id uuid not null,
      -- SHA-256 of what identifies the item
      fingerprint bytea not null,
      -- when it was last listed, to the day
      seen_at timestamptz(3) not null default now(),
      primary key (organization_id, webhook_id, fingerprint),
      foreign key (organization_id, webhook_id) references incoming_webhooks on delete cascade
    );
    create index incoming_items_age on incoming_items (seen_at);
  `)
  await protect(knex, 'incoming_items')
}
