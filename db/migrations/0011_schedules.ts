import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Which workflows have a Schedule in Temporal, and whether it is up to date. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table workflow_schedules (
      organization_id uuid not null,
      workflow_id uuid not null,
      -- counts the changes of what Temporal should have, which workflow_triggers and workflows say
      revision integer not null default 1,
      -- the revision that Temporal has; null: unknown
      synced integer,
      -- a relay is telling Temporal until then
      lease_until timestamptz(3),
      -- when the sweep last compared it with Temporal
      checked_at timestamptz(3) not null default now(),
      primary key (organization_id, workflow_id),
      foreign key (organization_id, workflow_id) references workflows on delete cascade
    );
    create index workflow_schedules_queue on workflow_schedules (lease_until) where synced is distinct from revision;
    create index workflow_schedules_checked on workflow_schedules (checked_at) where synced = revision;
  `)
  await protect(knex, 'workflow_schedules')
}
