import { POOL_NAME } from '../../workflows/language/pool.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { recordChange } from './audit-log.ts'

/**
 * The worker pools that an organization may use: none by default. The list in its row is the only one, so a pool exists
 * for an organization exactly if the operator has given it, whether or not a worker of it runs at the moment.
 */

/** @returns the pools, in alphabetical order. */
export async function getPools(tx: Tenant): Promise<string[]> {
  const row = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<{ pools: string[] }>('pools')
  return row.pools
}

/** Replaces the pools of the organization. Only for the operator. @returns the previous ones. */
export async function setPools(tx: Tenant, names: string[]): Promise<string[]> {
  const pools = [...new Set(names)].sort()
  const wrong = pools.find((name) => !POOL_NAME.test(name))
  if (wrong !== undefined) throw new Error(`${wrong} is not the name of a pool`)
  const locked = tx.trx('organizations').where({ id: tx.organizationId }).forNoKeyUpdate()
  const before = await locked.first<{ name: string; pools: string[] }>('name', 'pools')
  if (before.pools.join() === pools.join()) return pools
  await tx.trx('organizations').where({ id: tx.organizationId }).update({ pools })
  await recordChange(tx, 'organization.pools_changed', {
    id: tx.organizationId,
    name: before.name,
    details: { from: before.pools, to: pools },
  })
  return before.pools
}
