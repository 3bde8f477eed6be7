import type { Admission } from '../../../workflows/language/definition.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import type { HeldRun, Outcome } from './held.ts'

type Limit = NonNullable<Admission['concurrency']>

interface OpenRun {
  id: string
  priority: number
  /** Whether it holds a slot; otherwise it waits for one. */
  open: boolean
  /** Whether its cancellation was requested. */
  ending: boolean
}

/** Waiting and open runs of a key that are read for one decision. Above the greatest limit. */
const READ = 2_000

/**
 * Gives the slots of each key to its runs, in the order in which claims take them. All open runs hold one, also those
 * that sleep or are paused: of one key no more than `limit` are ever between their first and last node. The other runs
 * wait without a time, and the end of a run wakes the next one (`wakeNext`).
 */
export async function takeSlots(
  tx: Tenant,
  runs: readonly HeldRun[],
  outcomes: Map<string, Outcome>,
): Promise<void> {
  const byKey = new Map<string, HeldRun[]>()
  for (const run of runs) {
    if (!run.admission?.concurrency) outcomes.set(run.id, { kind: 'release' })
    else byKey.set(run.concurrency_key!, [...(byKey.get(run.concurrency_key!) ?? []), run])
  }
  if (byKey.size === 0) return
  const others = await listOthers(tx, [...byKey.keys()], runs)
  for (const [key, arrivals] of byKey) decide(arrivals, others.get(key) ?? [], outcomes)
}

const byTurn = (a: OpenRun, b: OpenRun) => a.priority - b.priority || (a.id < b.id ? -1 : 1)

function decide(arrivals: readonly HeldRun[], others: readonly OpenRun[], outcomes: Map<string, Outcome>) {
  const newest = arrivals.reduce((a, b) => (a.id > b.id ? a : b))
  // The newest version of the settings decides what becomes of runs of all versions.
  const { limit, policy } = newest.admission!.concurrency!
  const open = others.filter((run) => run.open).length
  const waiting = others.filter((run) => !run.open)
  let free = limit - open
  let queued = [
    ...waiting,
    ...arrivals.map(({ id, priority }) => ({ id, priority, open: false, ending: false })),
  ].sort(byTurn)
  if (policy === 'cancel_running') {
    const stay = [...others.filter((run) => run.open && !run.ending), ...queued].sort((a, b) =>
      a.id < b.id ? -1 : 1,
    )
    const victims = new Set(stay.slice(0, Math.max(0, stay.length - limit)).map(({ id }) => id))
    for (const id of victims) outcomes.set(id, { kind: 'cancel', reason: superseded(newest, limit) })
    queued = queued.filter(({ id }) => !victims.has(id))
  }
  const isNew = new Map(arrivals.map((run) => [run.id, run.hold !== 'key']))
  for (const { id } of queued) {
    if (free > 0) {
      free -= 1
      outcomes.set(id, { kind: 'release' })
    } else if (policy === 'skip' && isNew.get(id)) {
      outcomes.set(id, { kind: 'skip', code: 'concurrency_limit', reason: skipped(newest, limit) })
    } else if (isNew.has(id)) {
      outcomes.set(id, { kind: 'hold', hold: 'key', until: Number.POSITIVE_INFINITY })
    }
  }
}

const runsOf = (limit: Limit['limit']) => (limit === 1 ? 'one run' : `${limit} runs`)

const skipped = ({ workflow_name }: HeldRun, limit: number) =>
  `The run was skipped: ${workflow_name} allows ${runsOf(limit)} of a key at a time, and skips others (settings.concurrency).`

const superseded = ({ workflow_name }: HeldRun, limit: number) =>
  `The run was cancelled by a newer one: ${workflow_name} allows ${runsOf(limit)} of a key at a time (settings.concurrency).`

/** The other runs of the keys: all that hold a slot, and the first ones that wait. */
async function listOthers(
  tx: Tenant,
  keys: string[],
  batch: readonly HeldRun[],
): Promise<Map<string, OpenRun[]>> {
  const { rows } = await tx.trx.raw<{ rows: (OpenRun & { key: string })[] }>(
    `select k.key, r.* from unnest(cast(:keys as uuid[])) as k(key) cross join lateral (
       (select r.id, r.priority, true as open, r.cancel_requested_at is not null as ending from runs r
        where r.organization_id = :organizationId and r.concurrency_key = k.key and r.hold is null
          and r.ended_at is null limit ${READ})
       union all
       (select r.id, r.priority, false, false from runs r
        where r.organization_id = :organizationId and r.concurrency_key = k.key and r.status = 'queued'
          and r.hold = 'key' and r.id <> all(cast(:batch as uuid[]))
        order by r.priority, r.id limit ${READ})) r`,
    { organizationId: tx.organizationId, keys, batch: batch.map(({ id }) => id) },
  )
  const found = new Map<string, OpenRun[]>()
  for (const { key, ...run } of rows) found.set(key, [...(found.get(key) ?? []), run])
  return found
}

/** SQL: wakes the first run that waits for a slot of its key; a locked one is being decided about. */
export const WAKE = (key: string) => `
  update runs r set hold_until = now() from (
    select w.organization_id, w.id from ${key} cross join lateral (
      select w.organization_id, w.id from runs w
      where w.organization_id = k.organization_id and w.concurrency_key = k.concurrency_key and w.status = 'queued'
        and w.hold = 'key'
      order by w.priority, w.id limit 1 for no key update skip locked) w) next
  where r.organization_id = next.organization_id and r.id = next.id and r.hold_until = 'infinity'`

/** After the end of a run: the next run of its key takes its slot. */
export async function wakeNext(tx: Tenant, concurrencyKey: string): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    WAKE(
      '(select cast(:organizationId as uuid) as organization_id, cast(:key as uuid) as concurrency_key) k',
    ),
    { organizationId: tx.organizationId, key: concurrencyKey },
  )
  if (rowCount > 0) tx.wake('agx_runs')
}
