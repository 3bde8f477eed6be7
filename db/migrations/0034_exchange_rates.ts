import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** The kinds with amounts at that time, besides deals. */
const KINDS = ['companies', 'products', 'line_items']

export const config = { transaction: false }

/** The exchange rates that organizations set, and indexes that tell in which currencies their amounts are. */
export async function up(knex: Knex): Promise<void> {
  for (const table of KINDS)
    await knex.raw(`
      create index concurrently if not exists ${table}_currency on ${table} (organization_id, currency)
        where deleted_at is null and currency is not null`)
  // Deals are also sorted by their amounts: page by page from each currency.
  await knex.raw(`
    create index concurrently if not exists deals_currency on deals (organization_id, currency, amount, id)
      where deleted_at is null`)
  await knex.transaction(async (trx) => {
    await trx.raw(`
      create table exchange_rates (
        organization_id uuid not null references organizations on delete cascade,
        -- the currency of the organization when it set the rate
        base text not null,
        currency text not null,
        -- it counts from this day on, until the next one
        valid_from date not null,
        -- the units of base for one of the currency
        rate numeric not null,
        primary key (organization_id, base, currency, valid_from)
      )`)
    await protect(trx, 'exchange_rates')
  })
}
