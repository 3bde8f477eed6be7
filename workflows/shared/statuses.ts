/** The statuses of runs and of their nodes, in the database, on the wire and in workflow code. */

export const OPEN_RUN_STATUSES = ['queued', 'running', 'paused'] as const
export const RUN_END_STATUSES = ['completed', 'failed', 'cancelled', 'terminated', 'lost', 'skipped'] as const
export const RUN_STATUSES = [...OPEN_RUN_STATUSES, ...RUN_END_STATUSES] as const

export type EndStatus = (typeof RUN_END_STATUSES)[number]
export type RunStatus = (typeof RUN_STATUSES)[number]

export const OPEN_NODE_STATUSES = ['running', 'waiting'] as const
export const NODE_STATUSES = [...OPEN_NODE_STATUSES, 'completed', 'failed', 'skipped', 'cancelled'] as const

/** The statuses of a loop's items. */
export const ITERATION_STATUSES = ['running', 'completed', 'failed', 'cancelled'] as const

export type NodeStatus = (typeof NODE_STATUSES)[number]
