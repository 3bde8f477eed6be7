import type { System } from '../postgres/tenancy.ts'

/** An answered wait whose run was not signalled yet. */
export interface AnsweredWait {
  organization_id: string
  run_id: string
  path: string
  node_id: string
  /** A node that waits again, after a reset, has a wait of another id. */
  id: string
}

/** Leases up to `limit` answered waits whose runs must be signalled, the oldest answer first. */
export async function claimAnswered(system: System, limit: number): Promise<AnsweredWait[]> {
  const { rows } = await system.raw<{ rows: AnsweredWait[] }>(
    `update run_waits set lease_until = now() + interval '10 seconds'
     where (organization_id, run_id, path, node_id) in (
       select organization_id, run_id, path, node_id from run_waits
       where answered_at is not null and notified_at is null and (lease_until is null or lease_until < now())
       order by answered_at limit ? for update skip locked)
     returning organization_id, run_id, path, node_id, id`,
    [limit],
  )
  return rows
}

/** Records that the runs of these waits were signalled. */
export async function markNotified(system: System, waits: AnsweredWait[]): Promise<void> {
  await system('run_waits')
    .whereIn(
      ['organization_id', 'run_id', 'path', 'node_id', 'id'],
      waits.map((wait) => [wait.organization_id, wait.run_id, wait.path, wait.node_id, wait.id]),
    )
    .update({ notified_at: system.fn.now() })
}
