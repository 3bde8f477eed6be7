/**
 * The statuses of replays, of incoming and of outgoing webhooks, and the table of all moves between them.
 * `db/queue/replays.ts` contains the statements: nothing else changes `incoming_replays.status` or
 * `outgoing_replays.status`. `test/db/queue/replays.test.ts` reads this table and tries every move on every status. A
 * webhook has one open replay (running or paused) at most.
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | startReplay | (none) | running | the API | the webhook is Active and has no open replay | wakes the workers |
 * | insertReplay | (none) | completed | the API, which has replayed one entry at once | | |
 * | setReplayStatus | running, paused | running, paused, stopped | the API | | clears the problem; wakes the workers |
 * | recordPage | running | running, paused, completed | a worker, with the effects of a page | the row is locked by `lockRunning` | the position and the counts; paused: with the problem |
 *
 * A move from any other status changes nothing: it throws a conflict (setReplayStatus) or returns false (recordPage).
 */
export const REPLAY_STATUSES = ['running', 'paused', 'stopped', 'completed'] as const
export type ReplayStatus = (typeof REPLAY_STATUSES)[number]
