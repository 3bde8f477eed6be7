import type { Knex } from 'knex'

/** Values of sensitive fields are sealed. Those of the version before are until `sealPlain` has sealed them. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table sensitive_values add column if not exists sealed text')
  await knex.raw('alter table sensitive_values alter column value drop not null')
  // A rotation of SECRETS_KEY reads in this order.
  await knex.raw(`create unique index concurrently if not exists sensitive_values_masks
    on sensitive_values (organization_id, mask)`)
  await knex.raw(`create index concurrently if not exists sensitive_values_plain
    on sensitive_values (organization_id) where sealed is null`)
}

export const config = { transaction: false }
