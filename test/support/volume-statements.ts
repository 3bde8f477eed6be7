import { listAuditLog } from '../../db/access/audit-log.ts'
import { matchEvents } from '../../db/events/match.ts'
import { claimFiles, listIdleFiles } from '../../db/files/queue.ts'
import { listLogs } from '../../db/incoming/logs.ts'
import { claimReplays as claimIncomingReplays } from '../../db/incoming/replays.ts'
import { listDeliveries } from '../../db/outgoing/deliveries.ts'
import { releaseForQuota } from '../../db/outgoing/moves/holds.ts'
import {
  claimDeliveries,
  claimDeliveryChanges,
  claimIdleDeliveries,
  listStrandedEndpoints,
} from '../../db/outgoing/queue.ts'
import { claimReplays } from '../../db/outgoing/replays.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { PURGES } from '../../db/retention/purges.ts'
import { purgeBatch } from '../../db/retention/run.ts'
import { claimMails } from '../../db/runs/approval-mails.ts'
import { claimBatches } from '../../db/runs/batches.ts'
import { claimRuns, repairClaims } from '../../db/runs/claims.ts'
import { claimRunCommands } from '../../db/runs/commands.ts'
import { listSurplus } from '../../db/runs/on-limit.ts'
import { claimCancels, listIdleRuns, markRunsChecked } from '../../db/runs/queue.ts'
import { listRuns } from '../../db/runs/views.ts'
import { claimAnswered, claimDue } from '../../db/runs/waits.ts'
import { testActor } from './database.ts'

const RELAY = { id: '00000000-0000-4000-8000-000000000000', starts: 100, active: 10_000 }

type Work = (db: Database) => Promise<unknown>

/** What reads growing tables in the background and in lists, by name. */
export function volumeWork(organizations: string[]): Record<string, Work> {
  const tenant =
    (work: (tx: Tenant) => Promise<unknown>): Work =>
    (db) =>
      db.tenant(organizations[0]!, testActor, work)
  const page = { limit: 50, offset: 0 }
  const endpoint = async (tx: Tenant) => (await tx.trx('incoming_webhooks').first('id')).id as string
  return {
    ...Object.fromEntries(
      PURGES.map((purge) => [`purge: ${purge.name}`, ({ system }: Database) => purgeBatch(system, purge)]),
    ),
    'claim: runs': ({ system }) => claimRuns(system, RELAY, 100),
    'claim: repair': ({ system }) => repairClaims(system, RELAY, []),
    'claim: deliveries': ({ system }) => claimDeliveries(system, 100),
    'claim: imports': ({ system }) => claimFiles(system, 'imports', 10),
    'claim: cancels': ({ system }) => claimCancels(system, 100),
    'claim: changes': ({ system }) => claimDeliveryChanges(system, 100),
    'claim: answered waits': ({ system }) => claimAnswered(system, 100),
    'claim: due waits': ({ system }) => claimDue(system, 100),
    'claim: approval mails': ({ system }) => claimMails(system, 100),
    'claim: batches': ({ system }) => claimBatches(system, 4),
    'claim: commands': ({ system }) => claimRunCommands(system, 100),
    'claim: surplus runs': ({ system }) => listSurplus(system),
    'claim: replays': ({ system }) => claimReplays(system, 4),
    'claim: incoming replays': ({ system }) => claimIncomingReplays(system, 4),
    'claim: events': ({ system }) => matchEvents(system),
    'sweep: runs': async ({ system }) => {
      const runs = await listIdleRuns(system, '30 seconds', new Date(), 200)
      await markRunsChecked(
        system,
        runs.map(({ organization_id, id }) => ({ organization_id, id, stuck_reason: null })),
      )
    },
    'sweep: deliveries': ({ system }) => claimIdleDeliveries(system, '30 seconds', new Date(), 200),
    'sweep: files': ({ system }) => listIdleFiles(system, 'imports', '30 seconds', 200),
    'sweep: quota': ({ system }) => releaseForQuota(system),
    'sweep: endpoints': ({ system }) => listStrandedEndpoints(system),
    'list: audit log': tenant((tx) => listAuditLog(tx, {}, page)),
    'list: logs': tenant(async (tx) => listLogs(tx, await endpoint(tx), {}, page)),
    'list: all deliveries': tenant(async (tx) => listDeliveries(tx, undefined, {}, page)),
    'list: deliveries': tenant(async (tx) => listDeliveries(tx, await endpoint(tx), {}, page)),
    'list: runs': tenant((tx) => listRuns(tx, {}, page, { order: 'desc', count: 'estimated' })),
    'list: failed runs': tenant((tx) =>
      listRuns(tx, { status: ['failed'] }, page, { order: 'desc', count: 'estimated' }),
    ),
    'list: runs by status, time and text': tenant((tx) =>
      listRuns(
        tx,
        { status: ['failed', 'queued'], from: new Date(Date.now() - 20 * 86_400_000), q: 'refused' },
        page,
        { order: 'desc', count: 'estimated' },
      ),
    ),
  }
}
