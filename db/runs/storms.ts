import type { Knex } from 'knex'
import type { RunError } from '../../workflows/interpret/run-state.ts'
import { mailOwners } from '../access/account-mails.ts'
import { takeFromWindow, takeFromWindows, type WindowRule } from '../access/limits.ts'
import { limitOf, type Subscription } from '../access/plans.ts'
import { type SkipCode, tooManyQueued, tooWide } from '../model/runs/chain.ts'
import type { Wakes } from '../postgres/tenancy.ts'
import type { QueuedRuns } from './queued-runs.ts'

/**
 * Storms: events that trigger runs that raise events. The depth of a chain is bounded (`CHAIN_DEPTH`), and so is its
 * breadth: what descends from one run or event within a day has a budget, and an organization has a greatest number of
 * queued runs. What is above is skipped. Its triggers show it as their problem, the first of the skipped runs are rows,
 * and the owners get a mail.
 */

/** The window of what descends from a root: a day (UTC), because a workflow may wait for months between two events. */
const DAY = 86_400

export const descendantsOf = (organizationId: string, root: string, limit: number): WindowRule => ({
  organizationId,
  subject: `root:${root}`,
  limit,
  period: DAY,
})

/** Skipped runs of one root, or of one batch of events, that are rows; the problem of the trigger counts all. */
const SHOWN = 20
/** The owners get a mail of this kind at most once in so many seconds. */
const MAIL_PERIOD = 3_600

/** A run that an event is about to start. */
export interface Candidate {
  organization_id: string
  event_id: string
  depth: number
  /** The run or event from which it descends; null: it is the first run that the event starts. */
  root: string | null
  workflow_name: string
}

export interface Skipped<T> {
  candidate: T
  error: RunError & { code: SkipCode }
  /** Whether it becomes a row. */
  isShown: boolean
}

/** Decides which runs start, in their order. Those of events without a run before them have no root, and no budget. */
export async function skipStorms<T extends Candidate>(
  trx: Knex,
  candidates: T[],
  { queued, wakes }: { queued: QueuedRuns; wakes: Wakes },
): Promise<{ started: T[]; skipped: Skipped<T>[] }> {
  if (candidates.length === 0) return { started: [], skipped: [] }
  const within = await withinBudgets(trx, candidates)
  const skipped = [...within.skipped]
  const started: T[] = []
  for (const [organizationId, own] of groupedBy(within.started, (one) => one.organization_id)) {
    const { granted, limit } = await queued.take(trx, organizationId, own.length)
    started.push(...own.slice(0, granted))
    for (const [n, candidate] of own.slice(granted).entries())
      skipped.push({ candidate, error: tooManyQueued(limit), isShown: n < SHOWN })
  }
  await alarm(trx, skipped, wakes)
  return { started, skipped }
}

async function listSubscriptions(trx: Knex, candidates: Candidate[]): Promise<Map<string, Subscription>> {
  const ids = [...new Set(candidates.map(({ organization_id }) => organization_id))]
  const rows: (Subscription & { id: string })[] = await trx('organizations')
    .whereIn('id', ids)
    .select('id', 'plan', 'limits')
  return new Map(rows.map((row) => [row.id, row]))
}

/** Counts the events and runs of each root. */
async function withinBudgets<T extends Candidate>(
  trx: Knex,
  candidates: T[],
): Promise<{ started: T[]; skipped: Skipped<T>[] }> {
  const descending = candidates.filter(hasRoot)
  if (descending.length === 0) return { started: candidates, skipped: [] }
  const plans = await listSubscriptions(trx, descending)
  const roots = [...groupedBy(descending, ({ root }) => root)].map(([root, runs]) => {
    const { organization_id } = runs[0]!
    const events = new Set(runs.map(({ event_id }) => event_id)).size
    const limit = limitOf(plans.get(organization_id)!, 'max_descendants')
    return { runs, events, amount: events + runs.length, ...descendantsOf(organization_id, root, limit) }
  })
  const taken = await takeFromWindows(trx, roots)
  const skipped = new Map<T, Skipped<T>>()
  for (const [n, { runs, events, amount, limit, subject }] of roots.entries()) {
    const { granted, used } = taken[n]!
    if (granted === amount) continue
    const before = Math.max(0, used - amount - limit)
    for (const [place, candidate] of runs.slice(Math.max(0, granted - events)).entries()) {
      const error = tooWide(subject.slice('root:'.length), limit)
      skipped.set(candidate, { candidate, error, isShown: before + place < SHOWN })
    }
  }
  return { started: candidates.filter((one) => !skipped.has(one)), skipped: [...skipped.values()] }
}

const hasRoot = <T extends Candidate>(candidate: T): candidate is T & { root: string } =>
  candidate.root !== null

/** Queues a mail to the owners of each organization, unless they got one of this kind within the hour. */
async function alarm<T extends Candidate>(trx: Knex, skipped: Skipped<T>[], wakes: Wakes): Promise<void> {
  for (const [, all] of groupedBy(
    skipped,
    ({ candidate, error }) => `${candidate.organization_id} ${error.code}`,
  )) {
    const { candidate, error } = all[0]!
    const { organization_id: organizationId, workflow_name } = candidate
    const rule = { organizationId, subject: `mail:${error.code}`, limit: 1, period: MAIL_PERIOD }
    if ((await takeFromWindow(trx, rule)).granted === 0) continue
    const tx = { trx, organizationId, wake: wakes.add.bind(wakes) }
    await mailOwners(tx, 'runs_skipped', { workflow_name, reason: error.message })
  }
}

function groupedBy<T>(all: T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group) group.push(one)
    else groups.set(key, [one])
  }
  return groups
}
