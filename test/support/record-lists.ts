import { matchEvents } from '../../db/events/match.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import { compareChanges, listChangedOrganizations } from '../../db/records/lists/changes.ts'
import { comparePage, listPasses } from '../../db/records/lists/passes.ts'
import type { TestDatabase } from './database.ts'

/** Does what the workers do for lists, until nothing is left: matches events, compares changes and makes passes. */
export async function settleLists(db: TestDatabase, { page = 500 } = {}): Promise<void> {
  for (let work = 1; work > 0; ) {
    work = (await matchEvents(db.system)).events
    for (const job of await listPasses.claim(db.system, 100)) {
      work += 1
      await listPasses.takeTurn(db.system, job, () =>
        db.tenant(job.organization_id, SYSTEM, (tx) => comparePage(tx, job, page)),
      )
    }
    for (const organization of await listChangedOrganizations(db.system, 200))
      work += await db.tenant(organization, SYSTEM, (tx) => compareChanges(tx, 200))
  }
}

/** Matches the events, which queues the changes. */
export async function matchAll(db: TestDatabase): Promise<void> {
  while ((await matchEvents(db.system)).events > 0);
}

export interface MemberEvent {
  name: string
  data: {
    id: string
    list: { id: string; name: string }
    entity: string
    cause: string
    record: Record<string, unknown>
  }
  actor: { type: string; id: string | null }
}

/** The events of entries and leavings of a list, in order. */
export const memberEvents = async (db: TestDatabase, listId: string): Promise<MemberEvent[]> =>
  db
    .system('events')
    .whereIn('name', ['list.entered', 'list.left'])
    .whereRaw("data -> 'list' ->> 'id' = ?", [listId])
    .orderBy('id')
