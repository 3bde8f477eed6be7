import { LRUCache } from 'lru-cache'
import type { Tenant } from '../db/postgres/tenancy.ts'
import { getProgram } from '../db/workflows/workflows.ts'
import type { Program } from '../workflows/language/definition.ts'

/** The programs that ran last, by organization, workflow and version. A version never changes. */
export class Programs {
  private readonly programs = new LRUCache<string, Program>({ max: 500 })

  async get(tx: Tenant, workflowId: string, version: number): Promise<Program> {
    const key = `${tx.organizationId}:${workflowId}:${version}`
    const known = this.programs.get(key)
    if (known) return known
    const { program } = await getProgram(tx, workflowId, version)
    this.programs.set(key, program)
    return program
  }
}
