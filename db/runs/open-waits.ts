import type { ApprovalRequest } from '../../workflows/nodes/wait-for.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { listMails, type ShownMail } from './approval-mails.ts'
import { ANSWERABLE, type AnswerableType } from './waits.ts'

/** A wait in the list of its run. */
export interface OpenWait {
  id: string
  node_id: string
  path: string
  type: AnswerableType | 'child_run'
  /** The name of the signal, for a signal. */
  name: string | null
  /** The names of the events, for an event. */
  topics: string[] | null
  /** The record of the event, or the child run. */
  subject_id: string | null
  filter: string | null
  problem: { message: string; event_id: string; at: string } | null
  since: Date | null
  settings: ApprovalRequest | null
  /** The mails of an approval. */
  mails: ShownMail[]
  created_at: Date
  expires_at: Date | null
}

export const WAIT_TYPES = [...ANSWERABLE, 'child_run'] as const

/** The waits of a run's nodes, except for times, in the order in which they began. */
export async function listOpenWaits(tx: Tenant, runId: string): Promise<OpenWait[]> {
  const waits = await tx
    .trx('run_waits')
    .where({ organization_id: tx.organizationId, run_id: runId, answered_at: null })
    .whereIn('type', WAIT_TYPES)
    .orderBy(['created_at', 'path', 'node_id'])
    .select<Omit<OpenWait, 'mails'>[]>(
      'id',
      'node_id',
      'path',
      'type',
      'name',
      'topics',
      'subject_id',
      'filter',
      'problem',
      'since',
      'settings',
      'created_at',
      'expires_at',
    )
  const approvals = waits.filter(({ type }) => type === 'decision').map(({ id }) => id)
  const mails = approvals.length > 0 ? await listMails(tx, runId, approvals) : []
  return waits.map((wait) => ({
    ...wait,
    mails: mails.filter(({ approval_id }) => approval_id === wait.id),
  }))
}
