import { setTimeout as pause } from 'node:timers/promises'
import { NIL } from 'uuid'
import { takeFromWindow, windowAt } from '../../db/access/limits.ts'
import type { Database } from '../../db/postgres/connect.ts'

const PERIOD = 60
/** For the requests of a test, so that they fall into one window. */
const MARGIN_MS = 10_000

/** Uses up a window of a minute but for `left` requests. Waits for the next window if this one ends soon. */
export async function leaveOf(
  db: Database,
  rule: { organizationId?: string; subject: string; limit: number },
  left: number,
): Promise<void> {
  const { end } = windowAt(PERIOD, Date.now())
  if (end - Date.now() < MARGIN_MS) await pause(end - Date.now() + 10)
  await takeFromWindow(db.system, { organizationId: NIL, ...rule, period: PERIOD }, rule.limit - left)
}
