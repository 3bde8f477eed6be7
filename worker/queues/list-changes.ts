import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { takeTurn } from '../../db/queue/paged-jobs.ts'
import { compareChanges, listChangedOrganizations } from '../../db/records/lists/changes.ts'
import type { Queue } from '../relay.ts'

/** Changes of one transaction. */
const PAGE = 200
/** Organizations in work at once: the slow filters of one keep only its own place. */
const AT_ONCE = 4

/**
 * Compares changed records with lists, in a turn of each organization. It starts no workflow, and leases nothing: two
 * workers that claim the same organization exclude each other in each transaction.
 */
export function listChangesQueue({
  db,
  log,
}: {
  db: Database
  log: Logger
}): Queue<{ organization_id: string }> {
  const inWork = new Set<string>()
  return {
    name: 'list changes',
    channel: 'agx_lists',
    atOnce: AT_ONCE,
    async claim(system, limit) {
      const organizations = await listChangedOrganizations(system, limit, [...inWork])
      for (const id of organizations) inWork.add(id)
      return organizations.map((organization_id) => ({ organization_id }))
    },
    async start(_client, { organization_id }) {
      const report = (err: unknown, list_id: string) =>
        log.warn({ err, organization_id, list_id }, 'records could not be compared with a list')
      const page = () => db.tenant(organization_id, SYSTEM, (tx) => compareChanges(tx, PAGE, report))
      try {
        await takeTurn(async () => (await page()) > 0)
      } catch (err) {
        log.warn({ err, organization_id }, 'changed records could not be compared with lists')
      } finally {
        inWork.delete(organization_id)
      }
    },
  }
}
