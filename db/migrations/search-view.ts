import type { Knex } from 'knex'

/**
 * Creates `searched_<table>`, a view of the rows of the organization in the setting, read as the system role.
 *
 * Behind row-level security a condition that is not leakproof (LIKE, lower(), comparison of numerics, jsonb) can
 * neither use an index nor be estimated from statistics. The system role's policy is always true, so in the view such a
 * condition can. The view's own condition replaces the table's policy: a query that forgets the organization finds no
 * rows of another one.
 *
 * A view keeps the columns that it was created with: a migration that adds a column to the table must create it again.
 */
export async function searchView(knex: Knex, table: string): Promise<void> {
  await knex.raw(`
    create or replace view searched_${table} as select * from ${table}
      where organization_id = (select nullif(current_setting('app.organization_id', true), '')::uuid);
    grant create on schema public to agx_system;
    alter view searched_${table} owner to agx_system;
    revoke create on schema public from agx_system;
    grant select on searched_${table} to agx_app;
  `)
}
