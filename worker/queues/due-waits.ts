import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { ApprovalKey } from '../../db/process/approval-links.ts'
import { remind } from '../../db/runs/approvals.ts'
import { lookBack } from '../../db/runs/event-waits.ts'
import { type DueWait, dueWaits } from '../../db/runs/waits.ts'
import type { Queue } from '../relay.ts'

/**
 * Open waits that need something done: reminders and escalations of approvals, and the events that came before a wait. It
 * starts no workflow.
 */
export function dueWaitsQueue({
  db,
  approvalLink,
}: {
  db: Database
  approvalLink: (approval: ApprovalKey) => string
}): Queue<DueWait> {
  return {
    name: 'due waits',
    channel: 'agx_due_waits',
    claim: dueWaits.claim,
    start: (_client, { type, ...key }) =>
      db.tenant(key.organization_id, SYSTEM, (tx) =>
        type === 'decision' ? remind(tx, key, approvalLink) : lookBack(tx, key),
      ),
  }
}
