import { organizationNamed } from '../../db/access/plan-changes.ts'
import { setPools } from '../../db/access/pools.ts'
import { ConfigError } from '../../db/model/config-error.ts'
import { listReportedPools } from '../../db/queue/pool-workers.ts'
import { DEFAULT_POOL, POOL_NAME } from '../../workflows/language/pool.ts'
import { operatorCommand } from './operator-command.ts'

const NONE = 'none'
const USAGE = `usage: npm run set-pools -- <organization id, or email of an owner> <pool,pool,…|${NONE}>
the worker pools that its workflows may use, instead of those before; a name has lower case letters, digits and hyphens`

/** `npm run set-pools`: says which worker pools an organization may use. */
await operatorCommand('set-pools', 'the pools cannot be changed', async (connected) => {
  const [of, list, ...others] = process.argv.slice(2)
  const names = list === NONE ? [] : (list?.split(',') ?? [])
  const isPool = (name: string) => POOL_NAME.test(name) && name !== DEFAULT_POOL && name !== NONE
  if (!of || list === undefined || others.length > 0 || !names.every(isPool)) throw new ConfigError(USAGE)
  const db = connected()
  const { id, name } = await organizationNamed(db.system, of)
  const before = await setPools(db.system, id, names)
  const live = (await listReportedPools(db.system)).filter(({ workers }) => workers > 0)
  const unpolled = names.filter((pool) => !live.some((one) => one.pool === pool))
  const shown = (pools: string[]) => (pools.length > 0 ? pools.join(', ') : NONE)
  return [
    `pools of ${name} (${id}): ${shown(names)}, before ${shown(before)}`,
    ...unpolled.map((pool) => `no worker of ${pool} runs at the moment: start one with WORKER_POOL=${pool}`),
  ].join('\n')
})
