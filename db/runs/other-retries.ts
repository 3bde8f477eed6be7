import type { RunStatus } from '../../workflows/shared/statuses.ts'
import { AppError } from '../model/errors.ts'
import { isOpenRun } from '../model/runs/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** A run with the same first run. */
interface Relative {
  id: string
  status: RunStatus
  /** The run that it retries; null: it is the first one. */
  retries: string | null
  /** Nodes that the retried run has undone, and that have their effect in this one. */
  done: string[]
  /** Nodes that this one has undone, and whose idempotency keys the new retry would have again. */
  undid: string[]
}

/**
 * SQL: the nodes of the run `r` outside of loops, among `:undone`, that have had their effect, or may have where a
 * termination cut off their call. A loop that ended early has had that of the items that completed.
 */
const DONE = `array(
  select n.node_id from run_nodes n
  where n.organization_id = r.organization_id and n.run_id = r.id and n.path = '' and n.node_id = any(:undone)
    and (n.status = 'completed' or n.status = 'cancelled' and (n.attempt_token is not null or n.may_have_called)
      or exists (select from run_loops l where l.organization_id = n.organization_id and l.run_id = n.run_id
        and l.loop = n.node_id and l.succeeded > 0))
    and not exists (select from run_nodes u where u.organization_id = r.organization_id and u.run_id = r.id
      and u.path = '' and u.undoes = n.node_id and u.status = 'completed')
  order by n.position)`

/** SQL: the nodes that the run `r` has undone, but for those in `:renewed`. */
const UNDID = `array(
  select distinct u.undoes from run_nodes u
  where u.organization_id = r.organization_id and u.run_id = r.id and u.path = '' and u.undoes is not null
    and u.status = 'completed' and not (u.undoes = any(:renewed))
  order by u.undoes)`

/**
 * Throws `conflict` if the effects of a retry would come a second time: another retry of the same first run is open, has
 * completed, has done again what the run has undone, or has undone what the run has done. The runs that led to the
 * retried one do not count once they have ended: what they did is undone or kept in it. Serialises the retries of a first
 * run until the transaction ends.
 * @param undone the nodes that the retried run has undone. @param renewed those that get idempotency keys of their own.
 */
export async function requireNoOtherRetry(
  tx: Tenant,
  run: { id: string; retry_of: string | null },
  { undone, renewed }: { undone: string[]; renewed: string[] },
): Promise<void> {
  const first = run.retry_of ?? run.id
  const key = { organizationId: tx.organizationId, first }
  await tx.trx.raw(
    `select pg_advisory_xact_lock(hashtextextended('retries of ' || :organizationId::text || :first::text, 0))`,
    key,
  )
  const { rows } = await tx.trx.raw<{ rows: Relative[] }>(
    `select r.id, r.status, r.retry ->> 'run_id' as retries, ${DONE} as done,
       ${UNDID} as undid
     from runs r
     where r.organization_id = :organizationId and (r.id = :first or r.retry_of = :first)
     order by r.id desc`,
    { ...key, undone, renewed },
  )
  const led = ancestorsOf(run.id, rows)
  for (const { id, status, done, undid } of rows) {
    if (id === run.id) continue
    const other = `run ${id}, ${id === first ? 'the first run of this retry' : 'a retry of the same run'},`
    if (isOpenRun(status))
      throw new AppError('conflict', `${other} is ${status}`, {
        hint: 'wait for its end, or cancel it first',
      })
    if (led.has(id)) continue
    const hint = `retry run ${id} instead`
    if (status === 'completed') throw new AppError('conflict', `${other} has completed`, { hint })
    if (done.length > 0)
      throw new AppError('conflict', `${other} has done ${done.join(', ')} again, and not undone it`, {
        hint: `${hint}: it keeps what was done`,
      })
    if (undid.length > 0)
      throw new AppError('conflict', `${other} has undone ${undid.join(', ')}`, {
        hint: `${hint}: it does again what was undone`,
      })
  }
}

/** The run that a run retries, the one that this retries, and so on. */
function ancestorsOf(id: string, rows: Relative[]): Set<string> {
  const retries = new Map(rows.map((row) => [row.id, row.retries]))
  const found = new Set<string>()
  for (let next = retries.get(id); next && !found.has(next); next = retries.get(next)) found.add(next)
  return found
}
