import { type WindowRule, windowAt } from '../access/limits.ts'
import type { System } from '../postgres/tenancy.ts'

/**
 * The turns of mails that wait for a minute with room. A turn is a row of `limit_windows` beside the counters of the
 * minutes, which begins when the mail is due. A crash of PostgreSQL forgets both: the mails ask again.
 */
const subjectOf = (key: string) => `mail:turn:${key}`

/** How long a turn is kept for a mail that comes late, in milliseconds. */
const KEPT_MS = 86_400_000

/** Uses the turn of a mail if it has come. @returns when it is due; undefined if the mail has none. */
export async function useTurn(
  system: System,
  organizationId: string,
  key: string,
  now: number,
): Promise<number | undefined> {
  const turn = { organization_id: organizationId, subject: subjectOf(key) }
  const used = await system('limit_windows').where(turn).where('window_start', '<=', new Date(now)).delete()
  if (used > 0) return now
  const row = await system('limit_windows')
    .where(turn)
    .first<{ window_start: Date } | undefined>('window_start')
  return row?.window_start.getTime()
}

/**
 * Takes `amount` of the first minute with room after this one. The mail is due when those before it in that minute have
 * had their part of its time. @returns when.
 */
export async function takeTurn(
  system: System,
  minute: WindowRule & { period: number },
  { key, amount }: { key: string; amount: number },
  now: number,
): Promise<number> {
  const { organizationId, subject, limit, period } = minute
  for (;;) {
    const { start, end } = await firstWithRoom(system, minute, amount, now)
    const { rows } = await system.raw<{ rows: { used: number }[] }>(
      `insert into limit_windows as w (organization_id, subject, window_start, ends_at, used) values (?, ?, ?, ?, ?)
       on conflict (organization_id, subject, window_start) do update set used = w.used + excluded.used
         where w.used <= ? - excluded.used
       returning used`,
      [organizationId, subject, start, end, amount, limit],
    )
    const [taken] = rows
    // Others have taken the room meanwhile.
    if (!taken) continue
    const due = start.getTime() + Math.floor(((taken.used - amount) / limit) * period * 1_000)
    await system('limit_windows').insert({
      organization_id: organizationId,
      subject: subjectOf(key),
      window_start: new Date(due),
      ends_at: new Date(due + KEPT_MS),
      used: amount,
    })
    return due
  }
}

/** The first minute after this one that has room for `amount`: one that is counted, or the one after it. */
async function firstWithRoom(
  system: System,
  { organizationId, subject, limit, period }: WindowRule & { period: number },
  amount: number,
  now: number,
): Promise<{ start: Date; end: Date }> {
  const next = windowAt(period, now).end
  const { rows } = await system.raw<{ rows: { start: Date }[] }>(
    `with counted as (
       select window_start, ends_at, used from limit_windows
       where organization_id = :organizationId and subject = :subject and window_start >= :next)
     select min(start) as start from (
       select cast(:next as timestamptz) as start
         where not exists (select from counted where window_start = :next)
       union all select window_start from counted where used <= :limit - cast(:amount as integer)
       union all select ends_at from counted c
         where not exists (select from counted d where d.window_start = c.ends_at)) free`,
    { organizationId, subject, limit, amount, next: new Date(next) },
  )
  const start = rows[0]!.start
  return { start, end: new Date(start.getTime() + period * 1_000) }
}
