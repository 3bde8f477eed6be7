/** Waits of nodes for an answer from outside of the run. A wait is a row, into which the answer is written. */
export type WaitFor = { expires_at: Date | null } & (
  | {
      type: 'event'
      events: string[]
      /** Only events about this record. */
      record_id: string | undefined
      /** A placeholder that must render true; it reads the event as `event`. */
      filter: string | undefined
      since: 'run_start' | 'now'
    }
  | { type: 'signal'; name: string }
  | ({ type: 'decision'; notices: Notice[] } & ApprovalRequest)
)

/** The request to the assignees of an approval. */
export interface ApprovalRequest {
  title: string
  message: string | null
  /** Ids or email addresses of users. */
  assignees: string[]
  /** The email addresses of an escalation; without any it goes to the assignees. */
  escalate_to: string[]
}

/** An event that is raised if there is no answer by `at` (ISO 8601). */
export interface Notice {
  event: 'approval.reminder' | 'approval.escalated'
  at: string
}

export const DECISIONS = ['approved', 'rejected'] as const
export type Decision = (typeof DECISIONS)[number]

/** How a wait ended. `answer` is null if it has expired; its shape depends on the type of the wait. */
export interface Answer {
  answer: unknown
  /** The actor that answered; null for an event, and if the wait has expired. */
  answered_by: { type: string; id: string | null; shown_to?: { type: string; id: string } } | null
  /** ISO 8601. */
  answered_at: string
}

/** The answer of each type of wait. */
export interface EventAnswer {
  id: string
  name: string
  created_at: string
  /** The record, of an event that is about one. */
  record: Record<string, unknown> | null
  /** The data of any other event. */
  data: Record<string, unknown> | null
  previous: Record<string, unknown> | null
  /** The names of the fields that it changed. */
  changed: string[]
}
export interface SignalAnswer {
  payload: unknown
}
export interface ApprovalAnswer {
  decision: Decision
  comment: string | null
}
