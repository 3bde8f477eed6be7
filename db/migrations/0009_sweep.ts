import type { Knex } from 'knex'

/** The state of the sweep, in one row. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table sweep_state (
      id boolean primary key default true check (id),
      -- the worker that is elected, until the lease ends
      holder uuid,
      lease_until timestamptz(3),
      -- executions that closed before it were looked at; null: none yet
      watermark timestamptz(3)
    );
    insert into sweep_state default values;
    grant select, update on sweep_state to agx_system;
  `)
}
