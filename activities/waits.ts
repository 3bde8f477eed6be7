import { v7 as uuidv7 } from 'uuid'
import type { NewEvent } from '../db/model/events/event.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import type { ApprovalKey } from '../db/process/approval-links.ts'
import { insertApprovalMails } from '../db/runs/approval-mails.ts'
import { approvalEvent } from '../db/runs/approvals.ts'
import { insertChildWaits, listAnswers } from '../db/runs/children.ts'
import { expireWaits, insertWaits, listAnswered, type WaitToInsert } from '../db/runs/waits.ts'
import type { Happened } from '../workflows/bundle/protocol.ts'
import { nodeKey } from '../workflows/interpret/frames.ts'
import type { AnsweredNode, ChildEnd, RunNode, RunState } from '../workflows/interpret/run-state.ts'
import type { NewWait } from '../workflows/interpret/segment.ts'
import { findNodeType } from '../workflows/nodes/index.ts'

/** The waits of a run's nodes for answers and child runs. */

/**
 * The answers to waiting nodes, and the ends of the children that they wait for. A wait whose timer has fired expires
 * now. Runs without such nodes make no queries.
 */
export async function readAnswers(
  tx: Tenant,
  { run, nodes }: Pick<RunState, 'run' | 'nodes'>,
  happened: Happened[],
): Promise<{ answers: AnsweredNode[]; children: ReadonlyMap<string, ChildEnd>; hasWaits: boolean }> {
  const waiting = nodes.filter(({ status }) => status === 'waiting')
  const answerable = waiting.filter(isAnswerable)
  const fired = new Set(
    happened.map((one) => (one.type === 'timer' ? nodeKey(one.path ?? '', one.node) : undefined)),
  )
  const expired = answerable.filter(({ path, node_id }) => fired.has(nodeKey(path, node_id)))
  await expireWaits(tx, run.id, expired)
  const parents = waiting.filter((row) => row.wait_until === null && !isAnswerable(row) && !isLoop(row))
  return {
    answers: answerable.length > 0 ? await listAnswered(tx, run.id, answerable) : [],
    children: parents.length > 0 ? await listAnswers(tx, run.id, parents) : new Map(),
    hasWaits: answerable.length > 0 || parents.length > 0,
  }
}

/** Whether a node waits for an answer. */
const isAnswerable = ({ node_type }: RunNode) => findNodeType(node_type)?.answered !== undefined

const isLoop = ({ node_type }: RunNode) => findNodeType(node_type)?.body !== undefined

/**
 * Drops the waits of nodes that the same segment has cancelled, except for waits for children: the wait leads to the
 * child to cancel.
 */
export function withoutCancelled(waits: NewWait[], cancelled: RunNode[]): NewWait[] {
  const keys = new Set(cancelled.map(({ path, node_id }) => nodeKey(path, node_id)))
  return waits.filter((wait) => 'child_run_id' in wait || !keys.has(nodeKey(wait.path, wait.node_id)))
}

/**
 * Writes the waits that nodes have begun in a segment, and queues the mails of approvals. @returns the events to raise:
 * `approval.requested`.
 */
export async function beginWaits(
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
  for (const { id, for: wait } of others)
    if (wait.type === 'decision')
      await insertApprovalMails(tx, { ...wait, id, run_id }, ['approval.requested'])
  return others.flatMap(({ id, node_id, for: wait }) => {
    if (wait.type !== 'decision') return []
    const { title, message, assignees, expires_at } = wait
    const approval = {
      id,
      run_id,
      node_id,
      workflow_id: workflow_id!,
      workflow_name,
      title,
      message,
      assignees,
      requested_at: new Date(),
      expires_at,
      status: 'waiting' as const,
      comment: null,
      answered_by: null,
      answered_at: null,
    }
    const link = approvalLink({ organization_id: tx.organizationId, run_id, id })
    return [approvalEvent('approval.requested', approval, link)]
  })
}
