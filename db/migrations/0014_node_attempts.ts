import type { Knex } from 'knex'

/** The attempts of external nodes, with the result of each. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- of an external node: its last attempts, the oldest first (db/runs/attempts.ts)
    alter table run_nodes add column attempts jsonb;
  `)
}
