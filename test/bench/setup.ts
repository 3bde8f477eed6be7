import type { Database } from '../../db/postgres/connect.ts'

/** Sets limits of the demo organization that no bench reaches; they stay enforced. @returns its id. */
export async function liftLimits(db: Database): Promise<string> {
  const limits = {
    requests_per_minute: 100_000_000,
    requests_per_minute_per_key: 100_000_000,
    max_running: 10_000,
  }
  const [row] = await db
    .system('organizations')
    .update({ limits: JSON.stringify(limits) })
    .returning<{ id: string }[]>('id')
  return row!.id
}
