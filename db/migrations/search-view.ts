import type { Knex } from 'knex'

/**
 * A kind's records for conditions that are not leakproof. Behind row-level security such a condition (LIKE, lower, any
 * of jsonb) is never answered from an index, nor estimated from statistics. The view reads as the system role, whose
 * policy is always true, and shows the one organization that the setting names, as the policy of the table does: a
 * query that forgets the organization finds no other's rows here either.
 *
 * A migration that adds a column to the table makes its view again, for a view keeps the columns that it was made with.
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
