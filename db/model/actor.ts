export const ACTOR_TYPES = ['key', 'user', 'workflow_run', 'webhook', 'system'] as const

/** The author of a change: stored in `created_by`, `updated_by` and the history. */
export interface Actor {
  type: (typeof ACTOR_TYPES)[number]
  id: string | null
}

/** The actor of changes that no caller requested. */
export const SYSTEM: Actor = { type: 'system', id: null }
