import type { Admission } from '../../../workflows/language/definition.ts'
import { RateWindow } from '../../model/runs/rate-window.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { type HeldRun, milliseconds, type Outcome } from './held.ts'

interface Lane {
  /** The starts that the rate let through. */
  through: RateWindow
  /** The same with the times for which runs wait. */
  all: RateWindow
  /** Whether any run waits: a new one is behind it. */
  waits: boolean
}

/**
 * Lets at most `limit` runs of a key through within any `per`: the others wait, each for its turn, or are skipped. The
 * window is that of the starts themselves and not of the times that were foreseen: after an outage they do not start all
 * at once. A retry passes.
 * @returns the runs that go on.
 */
export async function limitRate(
  tx: Tenant,
  runs: readonly HeldRun[],
  now: number,
  outcomes: Map<string, Outcome>,
): Promise<HeldRun[]> {
  const lanes = new Map<string, Lane>()
  const passed: HeldRun[] = []
  for (const run of runs) {
    const rate = run.admission?.rate
    // A run that waits for its key has passed the rate before.
    if (!rate || run.retry_of !== null || run.hold === 'key') {
      passed.push(run)
      continue
    }
    const key = run.rate_key!
    const lane = lanes.get(key) ?? (await readLane(tx, key, rate, runs))
    lanes.set(key, lane)
    const isBehind = run.hold !== 'rate' && lane.waits
    const at = (isBehind ? lane.all : lane.through).next(now)
    if (at > now && rate.policy === 'skip') {
      outcomes.set(run.id, { kind: 'skip', code: 'rate_limit', reason: skipped(run, rate) })
      continue
    }
    lane.all.add(at)
    if (!isBehind) lane.through.add(at)
    if (at <= now) {
      passed.push(run)
      continue
    }
    lane.waits = true
    outcomes.set(run.id, { kind: 'hold', hold: 'rate', until: at })
  }
  return passed
}

const skipped = ({ workflow_name }: HeldRun, { limit, per_ms }: NonNullable<Admission['rate']>) =>
  `The run was skipped: ${workflow_name} starts at most ${limit} runs of a key within ${per_ms / 1_000} seconds, and skips others (settings.rate).`

async function readLane(
  tx: Tenant,
  key: string,
  rate: NonNullable<Admission['rate']>,
  batch: readonly HeldRun[],
): Promise<Lane> {
  const { rows } = await tx.trx.raw<{ rows: { at: number; waits: boolean }[] }>(
    `(select ${milliseconds('r.rated_at')} as at, false as waits from runs r
       where r.organization_id = :organizationId and r.rate_key = :key
         and r.rated_at > now() - make_interval(secs => :seconds)
       order by r.rated_at desc limit :limit)
     union all
     (select ${milliseconds('r.hold_until')}, true from runs r
       where r.organization_id = :organizationId and r.rate_key = :key and r.status = 'queued' and r.hold = 'rate'
         and r.id <> all(cast(:batch as uuid[]))
       order by r.hold_until desc limit :limit)`,
    {
      organizationId: tx.organizationId,
      key,
      seconds: rate.per_ms / 1_000,
      limit: rate.limit,
      batch: batch.map(({ id }) => id),
    },
  )
  const through = rows.filter(({ waits }) => !waits).map(({ at }) => at)
  return {
    through: new RateWindow(through, rate),
    all: new RateWindow(
      rows.map(({ at }) => at),
      rate,
    ),
    waits: rows.length > through.length,
  }
}
