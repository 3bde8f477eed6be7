import { listAuditLog } from '../../db/access/audit-log.ts'
import { matchEvents } from '../../db/events/match.ts'
import { listIdleFiles, queuedFiles } from '../../db/files/queue.ts'
import { listLogs } from '../../db/incoming/logs.ts'
import { incomingReplays } from '../../db/incoming/replays.ts'
import { listDeliveries } from '../../db/outgoing/deliveries.ts'
import { listInterrupted } from '../../db/outgoing/interrupted.ts'
import { releaseForQuota } from '../../db/outgoing/moves/holds.ts'
import {
  claimDeliveries,
  claimIdleDeliveries,
  deliveryChanges,
  listStrandedEndpoints,
} from '../../db/outgoing/queue.ts'
import { outgoingReplays } from '../../db/outgoing/replays.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { countLateRuns } from '../../db/queue/depth.ts'
import { listDueReminders } from '../../db/records/reminders.ts'
import { PURGES } from '../../db/retention/purges.ts'
import { purgeBatch } from '../../db/retention/run.ts'
import { approvalMails } from '../../db/runs/approval-mails.ts'
import { runBatches } from '../../db/runs/batches.ts'
import { claimRuns, repairClaims } from '../../db/runs/claims.ts'
import { runCommands } from '../../db/runs/commands.ts'
import { listFires, waitingSchedules } from '../../db/runs/fires.ts'
import { listLate } from '../../db/runs/late.ts'
import { listSurplus } from '../../db/runs/on-limit.ts'
import { cancels, listIdleRuns, markRunsChecked } from '../../db/runs/queue.ts'
import { listRuns } from '../../db/runs/views.ts'
import { answeredWaits, dueWaits } from '../../db/runs/waits.ts'
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
    'claim: deliveries': ({ system }) => claimDeliveries(system, RELAY.id, 100),
    'claim: imports': ({ system }) => queuedFiles.imports.claim(system, 10),
    'claim: cancels': ({ system }) => cancels.claim(system, 100),
    'claim: changes': ({ system }) => deliveryChanges.claim(system, 100),
    'claim: answered waits': ({ system }) => answeredWaits.claim(system, 100),
    'claim: due waits': ({ system }) => dueWaits.claim(system, 100),
    'claim: approval mails': ({ system }) => approvalMails.claim(system, 100),
    'claim: batches': ({ system }) => runBatches.claim(system, 4),
    'claim: commands': ({ system }) => runCommands.claim(system, 100),
    'claim: surplus runs': ({ system }) => listSurplus(system),
    'claim: waiting fires': ({ system }) => waitingSchedules.claim(system, 100),
    'claim: late runs': ({ system }) => listLate(system, 100),
    'claim: task reminders': ({ system }) => listDueReminders(system, 100),
    'claim: replays': ({ system }) => outgoingReplays.claim(system, 4),
    'claim: incoming replays': ({ system }) => incomingReplays.claim(system, 4),
    'claim: events': ({ system }) => matchEvents(system),
    'sweep: runs': async ({ system }) => {
      const runs = await listIdleRuns(system, '30 seconds', new Date(), 200)
      await markRunsChecked(
        system,
        runs.map(({ organization_id, id }) => ({ organization_id, id, stuck_reason: null, checked: true })),
      )
    },
    'sweep: interrupted deliveries': ({ system }) => listInterrupted(system, undefined),
    'sweep: deliveries': ({ system }) => claimIdleDeliveries(system, '30 seconds', new Date(), 200),
    'sweep: files': ({ system }) => listIdleFiles(system, 'imports', '30 seconds', 200),
    'sweep: quota': ({ system }) => releaseForQuota(system),
    'sweep: endpoints': ({ system }) => listStrandedEndpoints(system),
    'list: audit log': tenant((tx) => listAuditLog(tx, {}, page)),
    'list: logs': tenant(async (tx) => listLogs(tx, await endpoint(tx), {}, page)),
    'list: all deliveries': tenant(async (tx) => listDeliveries(tx, undefined, {}, page)),
    'list: deliveries': tenant(async (tx) => listDeliveries(tx, await endpoint(tx), {}, page)),
    'list: runs': tenant((tx) => listRuns(tx, {}, page, { order: 'desc', count: 'estimated' })),
    'count: late runs': ({ system }) => countLateRuns(system),
    'list: fires': tenant(async (tx) => listFires(tx, (await tx.trx('workflows').first('id')).id, 10)),
    'list: late runs': tenant((tx) =>
      listRuns(tx, { late: true }, page, { order: 'desc', count: 'estimated' }),
    ),
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
