import type { Actor } from '../model/actor.ts'
import { candidatePattern, type Finder, finderOf, type Person } from '../model/erasure/person.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { definePagedJobs, type JobKey } from '../queue/paged-jobs.ts'
import { FILES, type FileCursor, searchFile } from './job-files.ts'
import { PLACES } from './places.ts'
import { searchPlace } from './search.ts'
import { type ToReview, type Treated, treat } from './treat.ts'

/** An erasure as a worker claims it. */
export interface ClaimedErasure extends JobKey {
  created_by: Actor
}

export const erasureJobs = definePagedJobs<ClaimedErasure>(
  'erasures',
  'ended_at is null and due_at <= now()',
  1,
  ['created_by'],
)

/** How far an erasure is, in its row. */
interface Progress {
  person: Person
  by_name: boolean
  /** The index in the places, then in the files. */
  place: number
  cursor: string[] | null
  pass: number
  /** Whether this pass has erased something. */
  changed: boolean
  /** Rows of this pass that are in work. */
  busy: number
  erased: Record<string, number>
  to_review: ToReview[]
  review_count: number
}

/** The most items that a receipt lists. */
const REVIEWED = 1_000
/** Bound of the passes: rows that somebody writes without pause must not keep an erasure from its end. */
const MOST_PASSES = 20
const BUSY_SECONDS = 2

/**
 * Searches the next page of rows, and erases the person from them. A pass goes over all places. If it met rows that are
 * in work, or changed any, another pass follows, which finds what was written meanwhile. The last pass ends the erasure,
 * whose row then holds only the receipt. @returns whether there is more to do now.
 */
export async function advanceErasure(tx: Tenant, job: JobKey): Promise<boolean> {
  const row = () => tx.trx('erasures').where({ organization_id: tx.organizationId, id: job.id })
  const open = await row().whereNull('ended_at').forNoKeyUpdate().first<Progress | undefined>()
  if (!open) return false
  const found = await searchNext(tx, open)
  const now = { ...open, ...counted(open, found), cursor: found.cursor }
  if (found.cursor === null) now.place += 1
  const isOver = now.place === PLACES.length + FILES.length
  if (!isOver) {
    await row().update(stored(now))
    return true
  }
  const isLast = now.busy === 0 && (!now.changed || now.pass >= MOST_PASSES)
  if (isLast) {
    await row().update({ ...stored(now), person: null, cursor: null, ended_at: tx.trx.fn.now() })
    return false
  }
  const linked = now.to_review.filter(({ reason }) => reason === 'linked')
  await row().update({
    ...stored(now),
    place: 0,
    cursor: null,
    pass: now.pass + 1,
    changed: false,
    busy: 0,
    waiting: now.busy,
    to_review: JSON.stringify(linked),
    review_count: linked.length,
    ...(now.busy > 0 && { due_at: tx.trx.raw(`now() + interval '${BUSY_SECONDS} seconds'`) }),
  })
  return now.busy === 0
}

interface Searched {
  object: string
  treated: Treated[]
  cursor: string[] | null
}

async function searchNext(tx: Tenant, { place, cursor, person, by_name }: Progress): Promise<Searched> {
  const finder = finderOf(person)
  const at = PLACES[place]
  if (!at) return searchFiles(tx, place - PLACES.length, finder, cursor)
  const {
    table,
    rows,
    cursor: next,
  } = await searchPlace(tx, at, { pattern: candidatePattern(person), ids: person.ids }, cursor)
  const treated: Treated[] = []
  for (const one of rows) treated.push(await treat(tx, at, table, one, finder, by_name))
  return { object: at.object, treated, cursor: next }
}

async function searchFiles(
  tx: Tenant,
  place: number,
  finder: Finder,
  cursor: string[] | null,
): Promise<Searched> {
  const files = FILES[place]!
  const { treated, cursor: next } = await searchFile(tx, files, finder, cursor as FileCursor | null)
  return { object: files.object, treated: [treated], cursor: next }
}

function counted(progress: Progress, { object, treated }: Searched) {
  const erased = treated.filter((one) => one === 'erased').length
  const reviews = treated.filter((one): one is ToReview => typeof one === 'object')
  const isNew = ({ object, id }: ToReview, i: number, all: ToReview[]) =>
    all.findIndex((other) => other.object === object && other.id === id) === i
  const to_review = [...progress.to_review, ...reviews].filter(isNew)
  const added = to_review.length - progress.to_review.length
  return {
    erased:
      erased > 0
        ? { ...progress.erased, [object]: (progress.erased[object] ?? 0) + erased }
        : progress.erased,
    changed: progress.changed || erased > 0,
    busy: progress.busy + treated.filter((one) => one === 'busy').length,
    to_review: to_review.slice(0, REVIEWED),
    review_count: progress.review_count + added,
  }
}

const stored = ({ place, cursor, changed, busy, erased, to_review, review_count }: Progress) => ({
  place,
  cursor: cursor && JSON.stringify(cursor),
  changed,
  busy,
  erased: JSON.stringify(erased),
  to_review: JSON.stringify(to_review),
  review_count,
})
