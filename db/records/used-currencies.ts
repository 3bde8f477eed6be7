import { isNeverNull, type Kind } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { queryRows, searchView } from './pages.ts'

/**
 * The currencies in which a kind has amounts. Of an amount without a currency it is `own`, that of the organization. Each
 * is one step in an index (db/migrations/0034_exchange_rates.ts), however many records have it; deleted records, which a
 * list sorts too, are read.
 */
export async function usedCurrencies(
  tx: Tenant,
  kind: Kind,
  { own, deleted }: { own: string; deleted: boolean },
): Promise<string[]> {
  const rows = await queryRows<{ currency: string | null }>(
    tx,
    deleted ? ofDeleted(kind) : ofLive(kind),
    deleted ? [tx.organizationId] : [tx.organizationId, tx.organizationId, tx.organizationId],
  )
  return [...new Set(rows.map(({ currency }) => currency ?? own))].sort()
}

const ofDeleted = (kind: Kind): string =>
  `select distinct currency from ${searchView(kind)}
   where organization_id = ? and deleted_at is not null and ${hasAmount(kind)}`

function ofLive(kind: Kind): string {
  const next = (condition: string) =>
    `select currency from ${searchView(kind)} where organization_id = ? and deleted_at is null
       and currency ${condition} and ${hasAmount(kind)} order by currency limit 1`
  return `with recursive used as (
       (${next('is not null')})
       union all
       select (${next('> used.currency')}) from used where used.currency is not null
     )
     select currency from used where currency is not null
     union all
     (${next('is null')})`
}

/** SQL: whether a record has an amount; of line items each has. */
function hasAmount({ fields }: Kind): string {
  const money = Object.keys(fields).filter((name) => fields[name]!.type === 'money')
  if (money.some((name) => isNeverNull(fields[name]!))) return 'true'
  return `(${money.map((name) => `${name} is not null`).join(' or ')})`
}
