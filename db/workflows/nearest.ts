import { nearest } from '../../workflows/shared/nearest.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** Names among which the one that was meant is looked for: those of the newest workflows. */
const MOST_NAMES = 1_000

/** The names of workflows that were meant by names that none has. */
export async function nearestWorkflows(tx: Tenant, written: string[]): Promise<Map<string, string>> {
  if (written.length === 0) return new Map()
  const names = await tx
    .trx('workflows')
    .where({ organization_id: tx.organizationId, deleted_at: null })
    .orderBy('id', 'desc')
    .limit(MOST_NAMES)
    .pluck<string[]>('name')
  return new Map(
    written.flatMap((name): [string, string][] => {
      const near = nearest(name, names)
      return near === undefined ? [] : [[name, near]]
    }),
  )
}
