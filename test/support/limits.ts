import { setTimeout as pause } from 'node:timers/promises'
import { NIL } from 'uuid'
import { takeFromWindow, windowAt } from '../../db/access/limits.ts'
import type { Database } from '../../db/postgres/connect.ts'

const PERIOD = 60
/** For the requests of a test, so that they fall into one window. */
const MARGIN_MS = 10_000

/** Does `work` again until it falls into one minute, the window of most limits. */
export async function inOneMinute(work: () => Promise<void>): Promise<void> {
  for (;;) {
    const { end } = windowAt(PERIOD, Date.now())
    const failed = await work().then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    if (Date.now() < end && failed) throw failed.error
    if (Date.now() < end) return
  }
}

/** Uses up a window, by default of a minute, but for `left` requests. Waits for the next window if this one ends soon. */
export async function leaveOf(
  db: Database,
  rule: { organizationId?: string; subject: string; limit: number; period?: number },
  left: number,
): Promise<void> {
  const { period = PERIOD } = rule
  const { end } = windowAt(period, Date.now())
  if (end - Date.now() < MARGIN_MS) await pause(end - Date.now() + 10)
  await takeFromWindow(db.system, { organizationId: NIL, ...rule, period }, rule.limit - left)
}
