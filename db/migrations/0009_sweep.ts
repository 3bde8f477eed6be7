import type { Knex } from 'knex'

/** The state of the sweep, and what the database knows of Temporal's witness. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table sweep_state (
      id boolean primary key default true check (id),
      -- the worker that is elected, until the lease ends
      holder uuid,
      lease_until timestamptz(3),
      -- executions that closed before it were looked at; null: none yet
      watermark timestamptz(3),
      -- when the last loss of Temporal was noticed: what was compared with it before counts no more
      lost_at timestamptz(3),
      -- when the open workflows in Temporal were last compared with the rows
      compared_at timestamptz(3)
    );
    insert into sweep_state default values;
    grant select, update on sweep_state to agx_system;

    -- The witness in Temporal of each task queue; see worker/witness.ts.
    create table witnesses (
      task_queue text primary key,
      -- the last number that it was told
      sequence bigint not null default 0,
      -- the greatest number that it had remembered when it was asked
      seen bigint not null default 0,
      -- since when Temporal has known more than this database, which is a copy or was restored; null: it has not
      behind_since timestamptz(3)
    );
    grant select, insert, update on witnesses to agx_system;

    -- The ids of this database, and of those that it replaced for good: their runs are its own.
    create table database_ids (
      id text primary key
    );
    grant select, insert, delete on database_ids to agx_system;
  `)
}
