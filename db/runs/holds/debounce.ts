import type { Tenant } from '../../postgres/tenancy.ts'
import { type HeldRun, milliseconds, type Outcome } from './held.ts'

/** The run that waits for its key to be quiet. */
interface Pending {
  id: string
  /** The first start that it continues. */
  from: number
}

/**
 * Debounces runs, in order: the newest of a key takes the place of the one that waits, which is skipped, and waits from
 * its creation on. A run is never released here before it has waited in its row: starts that a relay finds late are then
 * all compared with each other first. A retry is not debounced: somebody asked for this run.
 * @returns the runs that go on.
 */
export async function debounce(
  tx: Tenant,
  runs: readonly HeldRun[],
  outcomes: Map<string, Outcome>,
): Promise<HeldRun[]> {
  const isNew = (run: HeldRun) =>
    run.hold === 'admission' && run.admission?.debounce !== undefined && run.retry_of === null
  const pending = await listPending(tx, [...new Set(runs.filter(isNew).map((run) => run.debounce_key!))])
  const passed: HeldRun[] = []
  for (const run of runs) {
    if (outcomes.has(run.id)) continue
    const key = run.debounce_key!
    if (!isNew(run)) {
      if (run.hold === 'debounce') pending.delete(key)
      passed.push(run)
      continue
    }
    const { for_ms, at_most_ms } = run.admission!.debounce!
    const other = pending.get(key)
    if (other && other.id > run.id) {
      outcomes.set(run.id, replacedBy(other.id))
      continue
    }
    if (other) outcomes.set(other.id, replacedBy(run.id))
    run.debounced_from = other?.from ?? run.debounced_from ?? run.created
    pending.set(key, { id: run.id, from: run.debounced_from })
    const until = Math.min(run.created + for_ms, run.debounced_from + at_most_ms)
    outcomes.set(run.id, { kind: 'hold', hold: 'debounce', until })
  }
  return passed
}

const replacedBy = (id: string): Outcome => ({
  kind: 'skip',
  code: 'debounced',
  reason: `The run was skipped: the run ${id}, started after it with the same key, takes its place (settings.debounce).`,
})

async function listPending(tx: Tenant, keys: string[]): Promise<Map<string, Pending>> {
  if (keys.length === 0) return new Map()
  const { rows } = await tx.trx.raw<{ rows: (Pending & { key: string })[] }>(
    `select distinct on (r.debounce_key) r.debounce_key as key, r.id, ${milliseconds('r.debounced_from')} as from
     from runs r where r.organization_id = :organizationId and r.status = 'queued' and r.hold = 'debounce'
       and r.debounce_key = any(cast(:keys as uuid[]))
     order by r.debounce_key, r.id desc`,
    { organizationId: tx.organizationId, keys },
  )
  return new Map(rows.map(({ key, ...one }) => [key, one]))
}
