import { POOL_NAME } from '../../workflows/language/pool.ts'
import { SYSTEM } from '../model/actor.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
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

/**
 * Replaces the pools of an organization. Only for the operator: the role of tenants cannot write the column. @returns
 * the previous ones.
 */
export function setPools(system: System, organizationId: string, names: string[]): Promise<string[]> {
  const pools = [...new Set(names)].sort()
  const wrong = pools.find((name) => !POOL_NAME.test(name))
  if (wrong !== undefined) throw new Error(`${wrong} is not the name of a pool`)
  return system.transaction(async (trx) => {
    const row = () => trx('organizations').where({ id: organizationId })
    const before = await row().forNoKeyUpdate().first<{ name: string; pools: string[] }>('name', 'pools')
    if (before.pools.join() === pools.join()) return pools
    await row().update({ pools })
    await recordChange({ trx, organizationId, actor: SYSTEM }, 'organization.pools_changed', {
      id: organizationId,
      name: before.name,
      details: { from: before.pools, to: pools },
    })
    return before.pools
  })
}
