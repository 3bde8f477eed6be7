import type { Tenant } from '../db/postgres/tenancy.ts'
import { getPlan } from '../db/workflows/workflows.ts'
import type { Program } from '../workflows/definition/types.ts'

const MAX_PROGRAMS = 500

/** An LRU cache of programs by organization, workflow and version. A version never changes. */
export class Programs {
  private readonly programs = new Map<string, Program>()

  async get(tx: Tenant, workflowId: string, version: number): Promise<Program> {
    const key = `${tx.organizationId}:${workflowId}:${version}`
    const program = this.programs.get(key) ?? (await getPlan(tx, workflowId, version)).plan
    this.programs.delete(key)
    this.programs.set(key, program)
    const [oldest] = this.programs.keys()
    if (this.programs.size > MAX_PROGRAMS && oldest) this.programs.delete(oldest)
    return program
  }
}
