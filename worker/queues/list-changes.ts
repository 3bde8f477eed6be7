import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { compareChanges, listQueuedChanges } from '../../db/records/lists/changes.ts'
import type { Queue } from '../relay.ts'

/** Changes of one claim, in which organizations take turns: a transaction for each of them. */
const PAGE = 200

/** Compares changed records with lists. It starts no workflow: its claim does all the work and returns no rows. */
export function listChangesQueue({ db, log }: { db: Database; log: Logger }): Queue<never> {
  return {
    name: 'list changes',
    channel: 'agx_lists',
    async claim(system) {
      for (let compared = PAGE; compared > 0; ) {
        compared = 0
        for (const { organization_id, ids } of await listQueuedChanges(system, PAGE))
          compared += await db
            .tenant(organization_id, SYSTEM, (tx) => compareChanges(tx, ids))
            .catch((err) => {
              log.warn({ err, organization_id }, 'changed records could not be compared with lists')
              return 0
            })
      }
      return []
    },
    async start() {},
  }
}
