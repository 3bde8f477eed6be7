import { v7 as uuidv7 } from 'uuid'
import type { NewEvent } from '../db/events/outbox.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import type { ApprovalKey } from '../db/runs/approval-links.ts'
import { approvalEvent } from '../db/runs/approvals.ts'
import { insertChildWaits } from '../db/runs/children.ts'
import { insertWaits, type WaitToInsert } from '../db/runs/waits.ts'
import type { RunState } from '../workflows/interpret/run-state.ts'
import type { NewWait } from '../workflows/interpret/segment.ts'

/** Writes what nodes have begun to wait for in a segment. @returns the events to raise: the requests of approvals. */
export async function openWaits(
  tx: Tenant,
  { id: run_id, workflow_id, workflow_name }: RunState['run'],
  waits: NewWait[],
  approvalLink: (approval: ApprovalKey) => string,
): Promise<NewEvent[]> {
  const children = waits.filter((wait) => 'child_run_id' in wait)
  const others = waits
    .filter((wait) => 'for' in wait)
    .map((wait): WaitToInsert => ({ ...wait, id: uuidv7() }))
  await insertChildWaits(tx, run_id, children)
  await insertWaits(tx, run_id, others)
  return others.flatMap(({ id, node_id, for: wait }) => {
    if (wait.type !== 'decision') return []
    const { title, message, assignees, expires_at } = wait
    const approval = {
      ...{
        id,
        run_id,
        node_id,
        workflow_id: workflow_id!,
        workflow_name,
        title,
        message,
        assignees,
        expires_at,
      },
      ...{
        status: 'waiting' as const,
        comment: null,
        answered_by: null,
        answered_at: null,
        requested_at: new Date(),
      },
    }
    const link = approvalLink({ organization_id: tx.organizationId, run_id, id })
    return [approvalEvent('approval.requested', approval, link)]
  })
}
