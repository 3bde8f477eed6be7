/** How a server that a node calls asks for another attempt. */

/** Whether another attempt may succeed after an answer with this status. */
export const isTransientStatus = (status: number): boolean =>
  status >= 500 || status === 429 || status === 408

const MOST_MS = 3_600_000

/** The delay of Retry-After, which is in seconds or a date; at most an hour. 0 without one. */
export function retryAfterMs(headers: Record<string, string>, now = Date.now()): number {
  const value = headers['retry-after']?.trim() ?? ''
  const delay = /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now
  return Number.isFinite(delay) ? Math.min(Math.max(delay, 0), MOST_MS) : 0
}
