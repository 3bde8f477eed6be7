import type { Tenant } from '../db/postgres/tenancy.ts'
import { getPlan } from '../db/workflows/workflows.ts'
import type { Plan } from '../workflows/definition/types.ts'

const MAX_PLANS = 500

/** Plans by organization, workflow and version, the least recently used forgotten first. A version never changes. */
export class Plans {
  private readonly plans = new Map<string, Plan>()

  async get(tx: Tenant, workflowId: string, version: number): Promise<Plan> {
    const key = `${tx.organizationId}:${workflowId}:${version}`
    const plan = this.plans.get(key) ?? (await getPlan(tx, workflowId, version)).plan
    this.plans.delete(key)
    this.plans.set(key, plan)
    const [oldest] = this.plans.keys()
    if (this.plans.size > MAX_PLANS && oldest) this.plans.delete(oldest)
    return plan
  }
}
