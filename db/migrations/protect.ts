import type { Knex } from 'knex'

/**
 * Enables row-level security, the second line of defence after the `where` of each query. agx_app reads and writes only
 * rows of the organization that its transaction has set; agx_system (key look-up, relay, sweep) has access to all rows.
 * FORCE applies the policies to the tables' owner too. The sub-select makes the planner evaluate the setting once per
 * statement, not once per row.
 */
export async function protect(knex: Knex, table: string, column = 'organization_id'): Promise<void> {
  await knex.raw(`
    alter table ${table} enable row level security;
    alter table ${table} force row level security;
    create policy tenant on ${table} to agx_app
      using (${column} = (select nullif(current_setting('app.organization_id', true), '')::uuid));
    create policy system on ${table} to agx_system using (true);
    grant select, insert, update, delete on ${table} to agx_app, agx_system;
  `)
}
