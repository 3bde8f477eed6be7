import { NodeError } from '../../../workflows/language/node-error.ts'
import { keyId, renderKeys } from '../../model/runs/run-keys.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { cancelRun, failHeldRun, skipRun } from '../moves/ends.ts'
import { debounce } from './debounce.ts'
import { type HeldRun, lockDue, type Outcome } from './held.ts'
import { takeSlots } from './key-slots.ts'
import { awaitPredecessors } from './predecessors.ts'
import { limitRate } from './rate.ts'

/**
 * Decides about up to `limit` due held runs of the organization, in one transaction: renders the keys of new ones, then
 * each passes its predecessor, debounce, rate and concurrency, or waits in its row. Every start passes here, whatever
 * made it (a request, an event, a schedule, a node, a retry), so that each is decided once. @returns whether there may be
 * more.
 */
export async function admitRuns(tx: Tenant, limit: number): Promise<boolean> {
  const due = await lockDue(tx, limit)
  if (!due || due.runs.length === 0) return false
  const outcomes = new Map<string, Outcome>()
  const runs = prepared(due.runs, outcomes)
  const first = awaitPredecessors(runs, due.now, outcomes)
  const quiet = await debounce(tx, first, outcomes)
  const rated = await limitRate(tx, quiet, due.now, outcomes)
  await takeSlots(tx, rated, outcomes)
  await save(tx, runs, outcomes)
  await end(tx, outcomes)
  return due.runs.length === limit || runs.length < due.runs.length
}

/** Keys are rendered on the event loop, while the organization is locked. */
const MOST_MS = 100

/** The runs with their keys, up to the first that would take longer: it is the first of the next page. */
function prepared(runs: readonly HeldRun[], outcomes: Map<string, Outcome>): HeldRun[] {
  const until = performance.now() + MOST_MS
  const left = runs.findIndex((run, index) => {
    if (index > 0 && performance.now() > until) return true
    if (run.hold === 'admission') prepare(run, outcomes)
    return false
  })
  return left < 0 ? [...runs] : runs.slice(0, left)
}

/** Renders the keys of a new run. */
function prepare(run: HeldRun, outcomes: Map<string, Outcome>): void {
  const { admission, workflow_id, trigger, inputs, org, env } = run
  const keys = admission ? renderKeys(admission, { trigger, inputs, org, env }) : {}
  if (keys instanceof NodeError) {
    const { code, message } = keys
    outcomes.set(run.id, { kind: 'fail', error: { code, message } })
    return
  }
  run.keys = keys
  const idOf = (name: 'concurrency' | 'debounce' | 'rate') =>
    admission?.[name] ? keyId(workflow_id, keys[name]) : null
  run.concurrency_key = idOf('concurrency')
  run.debounce_key = idOf('debounce')
  run.rate_key = idOf('rate')
}

/** Saves what was decided, before ends take effect: the end of a run wakes the next one of its key. */
async function save(tx: Tenant, runs: readonly HeldRun[], outcomes: Map<string, Outcome>): Promise<void> {
  const held = new Map(runs.map((run) => [run.id, run]))
  const rows = [...outcomes].flatMap(([id, outcome]) => {
    if (outcome.kind !== 'release' && outcome.kind !== 'hold') return []
    const run = held.get(id)
    return {
      id,
      hold: outcome.kind === 'hold' ? outcome.hold : null,
      until:
        outcome.kind === 'release'
          ? null
          : Number.isFinite(outcome.until)
            ? new Date(outcome.until).toISOString()
            : 'infinity',
      // Others than the due ones are released, and have their keys.
      known: run === undefined,
      keys: run?.keys && Object.keys(run.keys).length > 0 ? run.keys : null,
      concurrency_key: run?.concurrency_key,
      debounce_key: run?.debounce_key,
      rate_key: run?.rate_key,
      debounced_from:
        typeof run?.debounced_from === 'number' ? new Date(run.debounced_from).toISOString() : null,
    }
  })
  if (rows.length === 0) return
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update runs r set hold = s.hold, hold_until = s.until, updated_at = now(),
       keys = case when s.known then r.keys else s.keys end,
       concurrency_key = case when s.known then r.concurrency_key else s.concurrency_key end,
       debounce_key = case when s.known then r.debounce_key else s.debounce_key end,
       rate_key = case when s.known then r.rate_key else s.rate_key end,
       debounced_from = case when s.known then r.debounced_from else s.debounced_from end,
       rated_at = coalesce(r.rated_at, case when (s.hold is null or s.hold = 'key') and not s.known
         and s.rate_key is not null and r.retry_of is null then now() end)
     from jsonb_to_recordset(:rows) as s(id uuid, hold text, until timestamptz, known boolean, keys jsonb,
       concurrency_key uuid, debounce_key uuid, rate_key uuid, debounced_from timestamptz)
     where r.organization_id = :organizationId and r.id = s.id and r.status = 'queued' and r.hold is not null`,
    { organizationId: tx.organizationId, rows: JSON.stringify(rows) },
  )
  if (rowCount > 0) tx.wake('agx_runs')
}

async function end(tx: Tenant, outcomes: Map<string, Outcome>): Promise<void> {
  for (const [id, outcome] of outcomes) {
    if (outcome.kind === 'skip') await skipRun(tx, id, outcome.reason, outcome.code)
    else if (outcome.kind === 'cancel') await cancelRun(tx, id, outcome.reason)
    else if (outcome.kind === 'fail') await failHeldRun(tx, id, outcome.error)
  }
}
