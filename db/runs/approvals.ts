import type { ApprovalAnswer, ApprovalRequest, Decision, Notice } from '../../workflows/nodes/wait-for.ts'
import { insertEvents } from '../events/outbox.ts'
import { AppError, conflict, notFound } from '../model/errors.ts'
import type { NewEvent } from '../model/events/event.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { ApprovalKey, ShownTo } from '../process/approval-links.ts'
import type { ApprovalEventName } from './approval-mails.ts'
import { insertApprovalMails } from './approval-mails.ts'
import type { WaitKey } from './waits.ts'

/** A request for a decision, with the decision. */
export interface Approval extends Omit<ApprovalRequest, 'escalate_to'> {
  id: string
  run_id: string
  node_id: string
  workflow_id: string
  workflow_name: string
  /** `closed`: the wait has expired, or its run has ended. */
  status: 'waiting' | Decision | 'closed'
  comment: string | null
  answered_by: Answerer | null
  answered_at: Date | null
  requested_at: Date
  expires_at: Date | null
}

/** The author of a decision: a caller of the API, or somebody with the link. */
export interface Answerer {
  type: 'key' | 'user' | 'link'
  id: string | null
  /** The caller to whom the API showed the link. Absent if it came by mail or event. */
  shown_to?: ShownTo
}

interface Row {
  id: string
  run_id: string
  path: string
  node_id: string
  workflow_id: string
  workflow_name: string
  settings: ApprovalRequest & { notices: Notice[] }
  answer: ApprovalAnswer | null
  answered_by: Answerer | null
  answered_at: Date | null
  created_at: Date
  expires_at: Date | null
}

/** Throws `not_found`. `lock`: locks the row until the transaction ends. */
async function findRow(
  tx: Tenant,
  { run_id, id }: Omit<ApprovalKey, 'organization_id'>,
  lock = false,
): Promise<Row> {
  const { rows } = await tx.trx.raw<{ rows: Row[] }>(
    `select w.id, w.run_id, w.path, w.node_id, w.settings, w.answer, w.answered_by, w.answered_at, w.created_at,
       w.expires_at, r.workflow_id, r.workflow_name
     from run_waits w join runs r on r.organization_id = w.organization_id and r.id = w.run_id
     where w.organization_id = ? and w.id = ? and w.run_id = ? and w.type = 'decision'
     ${lock ? 'for no key update of w' : ''}`,
    [tx.organizationId, id, run_id],
  )
  if (!rows[0]) throw notFound('approval')
  return rows[0]
}

function present(row: Row): Approval {
  const { id, run_id, node_id, workflow_id, workflow_name, settings, answer, expires_at } = row
  const { title, message, assignees } = settings
  return {
    id,
    run_id,
    node_id,
    workflow_id,
    workflow_name,
    title,
    message,
    assignees,
    expires_at,
    status: row.answered_at === null ? 'waiting' : (answer?.decision ?? 'closed'),
    comment: answer?.comment ?? null,
    answered_by: row.answered_by,
    answered_at: answer && row.answered_at,
    requested_at: row.created_at,
  }
}

/** Throws `not_found`. */
export const getApproval = async (tx: Tenant, key: Omit<ApprovalKey, 'organization_id'>): Promise<Approval> =>
  present(await findRow(tx, key))

/**
 * Records a decision. The first of a decision and the node's timeout counts. Throws `not_found`; `conflict` if the
 * approval is already decided; `gone` if the wait has expired or the run has ended.
 */
export async function answerApproval(
  tx: Tenant,
  key: Omit<ApprovalKey, 'organization_id'>,
  answer: ApprovalAnswer,
  by: Answerer,
): Promise<Approval> {
  const row = await findRow(tx, key, true)
  requireOpen(present(row))
  const { rows } = await tx.trx.raw<{ rows: { answered_at: Date }[] }>(
    `update run_waits set answer = :answer, answered_by = :by, answered_at = now(), due_at = null, lease_until = null,
       notified_at = null
     where organization_id = :organizationId and run_id = :runId and path = :path and node_id = :nodeId
     returning answered_at`,
    {
      organizationId: tx.organizationId,
      runId: row.run_id,
      path: row.path,
      nodeId: row.node_id,
      answer: JSON.stringify(answer),
      by: JSON.stringify(by),
    },
  )
  const answered = present({ ...row, answer, answered_by: by, answered_at: rows[0]!.answered_at })
  await insertEvents(tx, [approvalEvent('approval.answered', answered)])
  tx.wake('agx_waits')
  return answered
}

/** Throws `conflict` or `gone` if the approval can no longer be decided. */
export function requireOpen({ status, answered_at }: Pick<Approval, 'status' | 'answered_at'>): void {
  if (status === 'closed')
    throw new AppError('gone', 'the approval is closed: it has expired, or its run has ended')
  if (status !== 'waiting')
    throw conflict(`the approval was already ${status} at ${answered_at?.toISOString()}`)
}

/** An event of an approval, raised for its run. All but `approval.answered` contain the link. */
export function approvalEvent(name: ApprovalEventName, approval: Approval, link?: string): NewEvent {
  const { answered_at, requested_at, expires_at, ...rest } = approval
  const iso = (time: Date | null) => time?.toISOString() ?? null
  return {
    name,
    cause: approval.run_id,
    data: {
      object: 'approval',
      ...rest,
      answered_at: iso(answered_at),
      requested_at: iso(requested_at),
      expires_at: iso(expires_at),
      link: link ?? null,
    },
  }
}

/**
 * Raises the due events of an open approval, and queues their mails: the escalation, and one reminder even if several
 * are overdue. `linkOf` creates the link.
 */
export async function remind(
  tx: Tenant,
  key: WaitKey,
  linkOf: (approval: ApprovalKey) => string,
): Promise<void> {
  const row = await findRow(tx, key, true)
  if (row.answered_at !== null) return
  const now = Date.now()
  const { notices } = row.settings
  const due = new Set(notices.filter(({ at }) => Date.parse(at) <= now).map(({ event }) => event))
  const left = notices.filter(({ at }) => Date.parse(at) > now)
  await tx.trx.raw(
    `update run_waits set settings = settings || cast(:notices as jsonb), due_at = :due, lease_until = null
     where organization_id = :organizationId and run_id = :runId and path = :path and node_id = :nodeId`,
    {
      organizationId: tx.organizationId,
      runId: row.run_id,
      path: row.path,
      nodeId: row.node_id,
      notices: JSON.stringify({ notices: left }),
      due: left[0]?.at ?? null,
    },
  )
  const link = linkOf(key)
  await insertEvents(
    tx,
    [...due].map((event) => approvalEvent(event, present(row), link)),
  )
  await insertApprovalMails(tx, { ...row.settings, id: row.id, run_id: row.run_id }, due)
}
