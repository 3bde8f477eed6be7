export const LOG_STATUSES = ['Success', 'Failed', 'Blocked'] as const
export type LogStatus = (typeof LOG_STATUSES)[number]
export const LOG_ACTIONS = ['Created', 'Updated', 'Skipped'] as const
export type LogAction = (typeof LOG_ACTIONS)[number]
/** The action of the log for the action of the answer. */
export const LOG_ACTION_OF = { created: 'Created', updated: 'Updated', skipped: 'Skipped' } as const
