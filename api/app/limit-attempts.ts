import { NIL } from 'uuid'
import { takeFromWindow, windowAt } from '../../db/access/limits.ts'
import { AppError } from '../../db/model/errors.ts'
import type { AppDeps } from '../deps.ts'
import { subnetOf } from '../http/client-ip.ts'

const FIVE_MINUTES = 300
export const HOUR = 3_600

/** Counts a password attempt. Called before the check of the password, which is expensive. Throws rate_limited. */
export async function limitAttempts(deps: AppDeps, clientIp: string, email: string): Promise<void> {
  const address = subnetOf(clientIp)
  const user = email.toLowerCase()
  await limit(deps, { subject: `sign-in address ${address}`, limit: 30 })
  await limit(deps, { subject: `sign-in email ${user} from ${address}`, limit: 10 })
  // The limit over all client addresses is high, so that only a botnet can lock the owner out.
  await limit(deps, { subject: `sign-in email ${user}`, limit: 300 })
}

interface Rule {
  subject: string
  limit: number
  /** In seconds. Default: five minutes. */
  period?: number
}

/** Counts a request without a session. @returns whether it is within the limit. */
export async function isWithin(deps: AppDeps, { period = FIVE_MINUTES, ...rule }: Rule): Promise<boolean> {
  // The organization is unknown before sign-in.
  const { granted } = await takeFromWindow(deps.db.system, { organizationId: NIL, period, ...rule })
  return granted > 0
}

/** Counts a request without a session against a limit. Throws rate_limited. */
export async function limit(deps: AppDeps, rule: Rule): Promise<void> {
  if (await isWithin(deps, rule)) return
  const { period = FIVE_MINUTES } = rule
  const { end } = windowAt(period, Date.now())
  throw new AppError('rate_limited', 'too many attempts', {
    retry_after: Math.max(1, Math.ceil((end - Date.now()) / 1000)),
  })
}
