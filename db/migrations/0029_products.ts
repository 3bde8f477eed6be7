import type { Knex } from 'knex'
import { recordTable } from './record-table.ts'
import { sortIndex } from './sort-index.ts'

/** Products, and the line items of deals. */
export async function up(knex: Knex): Promise<void> {
  await recordTable(
    knex,
    'products',
    `name text not null, sku text, description text, unit_price numeric, currency text, tax_percent numeric,
     recurring_interval text, active boolean not null,
     name_lower text collate "und-x-icu" generated always as (lower(name)) stored`,
    ['recurring_interval', 'currency'],
  )
  await recordTable(
    knex,
    'line_items',
    `deal_id uuid, product_id uuid, name text not null, quantity numeric not null, unit_price numeric not null,
     currency text, discount_percent numeric, discount_amount numeric, tax_percent numeric, recurring_interval text,
     amount numeric not null, tax_amount numeric not null`,
    ['product_id', 'recurring_interval', 'currency', 'amount'],
    [
      ['deal_id', 'line_items_deal'],
      ['product_id', 'line_items_product'],
    ],
  )
  await sortIndex(knex, 'products', 'name_lower', { name: 'products_name', nullable: false })
  for (const table of ['products', 'line_items'])
    await knex.raw(`
      create index ${table}_restorable on ${table} (organization_id, created_at desc, id desc)
        where deleted_at is not null`)
}
