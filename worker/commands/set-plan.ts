import { changePlan, organizationNamed } from '../../db/access/plan-changes.ts'
import { PLANS } from '../../db/access/plans.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import { ConfigError } from '../../db/model/config-error.ts'
import { operatorCommand } from './operator-command.ts'

const USAGE = `usage: npm run set-plan -- <organization id, or email of an owner> <${PLANS.join('|')}> [--force]
--force: also if the organization has more than the plan allows; what exists stays, and nothing is added`

/** `npm run set-plan`: changes the plan of an organization, whatever PLAN_CHANGES says. */
await operatorCommand('set-plan', 'the plan cannot be changed', async (connected) => {
  const args = process.argv.slice(2)
  const evenIfExceeded = args.includes('--force')
  const [of, to, ...others] = args.filter((arg) => arg !== '--force')
  const plan = PLANS.find((name) => name === to)
  if (!of || !plan || others.length > 0) throw new ConfigError(USAGE)
  const db = connected()
  const { id, name } = await organizationNamed(db.system, of)
  const before = await db.tenant(id, SYSTEM, (tx) => changePlan(tx, plan, { evenIfExceeded }))
  return `plan of ${name} (${id}): ${plan}${before === plan ? ', as before' : `, before ${before}`}`
})
