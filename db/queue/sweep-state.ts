import type { System } from '../postgres/tenancy.ts'

/**
 * Elects the worker that sweeps, by a lease on one row: it ends by itself when the worker dies, and holds no connection.
 * What the sweep writes is correct with two sweepers as well; the lease only saves the second one's work.
 */

const LEASE_SECONDS = 20

/** Takes or renews the lease. @returns false if another worker holds it. */
export async function takeSweepLease(system: System, holder: string): Promise<boolean> {
  const { rowCount } = await system.raw<{ rowCount: number }>(
    `update sweep_state set holder = :holder, lease_until = now() + make_interval(secs => :seconds)
     where holder is null or holder = :holder or lease_until < now()`,
    { holder, seconds: LEASE_SECONDS },
  )
  return rowCount === 1
}

export async function endSweepLease(system: System, holder: string): Promise<void> {
  await system('sweep_state').where({ holder }).update({ holder: null, lease_until: null })
}

/** Ends the lease of any worker: that of a dump, which no longer lives. */
export async function freeSweepLease(system: System): Promise<void> {
  await system('sweep_state').update({ holder: null, lease_until: null })
}

/** Executions that closed before the watermark were looked at. `now` is the database's time. */
export async function readWatermark(system: System): Promise<{ watermark: Date | null; now: Date }> {
  return system('sweep_state').first('watermark', system.raw('now() as now'))
}

/** Moves the watermark forward, as long as `holder` is elected. */
export async function saveWatermark(system: System, holder: string, watermark: Date): Promise<void> {
  await system('sweep_state').where({ holder }).update({ watermark })
}
