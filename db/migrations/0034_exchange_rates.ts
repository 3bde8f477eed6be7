import type { Knex } from 'knex'
import { concurrentIndex } from './concurrent-index.ts'
import { protect } from './protect.ts'

/** The kinds with amounts at that time, and which of their records have one; deals are below. */
const AMOUNTS = [
  ['companies', 'and annual_revenue is not null'],
  ['products', 'and unit_price is not null'],
  ['line_items', ''],
] as const

export const config = { transaction: false }

/**
 * The exchange rates that organizations set, and indexes that tell in which currencies their amounts are. Repeatable: it
 * is in no transaction.
 */
export async function up(knex: Knex): Promise<void> {
  for (const [table, has] of AMOUNTS)
    await concurrentIndex(
      knex,
      `${table}_currency`,
      `${table} (organization_id, currency) where deleted_at is null ${has}`,
    )
  // Deals are also sorted by their amounts: page by page from each currency.
  await concurrentIndex(
    knex,
    'deals_currency',
    'deals (organization_id, currency, amount, id) where deleted_at is null and amount is not null',
  )
  if (await knex.schema.hasTable('exchange_rates')) return
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
