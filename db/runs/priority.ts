/**
 * The priority of a queued run, by which a workflow's runs are claimed: 0 if a client may wait for it, else 1. A run that
 * Temporal has lost while it slept has an even number added, greater than every priority: its workflow is started after
 * all new runs, because an emptied Temporal may have lost a hundred thousand. Of these, those that wake first are started
 * first, by powers of two of the hours that are left.
 */
const PRIORITIES = 2
const MOST_STEPS = 12

/** SQL: the priority of the run `r`, without what was added. */
export const ownPriority = (r: string): string => `${r}.priority % ${PRIORITIES}`

/**
 * SQL: the priority of the run `r`, which sleeps or not, when Temporal has lost it. One whose cancellation was requested
 * before that is cancelled in its new workflow, for which somebody waits. Seconds are subtracted, not times: one
 * of them may be infinite, which PostgreSQL subtracts from version 17 on only.
 */
export const lostPriority = (r: string): string => `case
  when ${r}.cancel_requested_at is not null then 0
  when ${r}.sleeps_until > now() then ${ownPriority(r)} + ${PRIORITIES} * cast(1 + least(${MOST_STEPS}, greatest(0,
    ceil(ln(greatest(1, (extract(epoch from ${r}.sleeps_until) - extract(epoch from now())) / 3600)) / ln(2)))) as smallint)
  else ${r}.priority end`
