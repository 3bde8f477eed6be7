import type { Knex } from 'knex'

/**
 * The second wall: the application's role sees the rows of the organization that its transaction named and no
 * others; the system role (key look-up, relay, sweep) sees all. FORCE makes it hold for the tables' owner too.
 * The sub-select lets the planner evaluate the setting once for a statement instead of once for a row.
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
