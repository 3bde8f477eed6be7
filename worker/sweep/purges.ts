import { setTimeout as pause } from 'node:timers/promises'
import type { System } from '../../db/postgres/tenancy.ts'
import type { Logger } from '../../db/process/log.ts'
import type { Purge } from '../../db/retention/purge.ts'
import { PURGES } from '../../db/retention/purges.ts'
import { type PurgePass, purgeBatch } from '../../db/retention/run.ts'

/** The least pause after a batch; the pause is as long as the batch took. */
const MIN_PAUSE_MS = 5

/**
 * Deletes rows past their retention: one batch of each purge in turn, so that a large one does not delay the others,
 * until all are done or the time is over. The next call continues where this one stopped.
 */
export class Purger {
  private readonly system: System
  private readonly log: Logger
  private readonly purges: readonly Purge[]
  private readonly passes = new Map<Purge, PurgePass>()

  constructor(deps: { system: System; log: Logger; purges?: readonly Purge[] }) {
    this.system = deps.system
    this.log = deps.log
    this.purges = deps.purges ?? PURGES
  }

  /** @param keepOn is asked before each round: whether there is time left, and this process is still elected. */
  async run(keepOn: () => boolean | Promise<boolean>): Promise<void> {
    let open = this.purges.filter((purge) => this.isDue(purge))
    while (open.length > 0 && (await keepOn())) {
      const unfinished: Purge[] = []
      for (const purge of open) if (await this.step(purge)) unfinished.push(purge)
      open = unfinished
    }
  }

  private isDue(purge: Purge): boolean {
    const pass = this.passes.get(purge)
    return !pass?.endedAt || Date.now() - pass.endedAt >= purge.everyMinutes * 60_000
  }

  /** One batch. @returns whether the purge has more to do now. */
  private async step(purge: Purge): Promise<boolean> {
    const { name } = purge
    let pass = this.passes.get(purge)
    if (!pass || pass.endedAt) pass = { deleted: 0 }
    this.passes.set(purge, pass)
    const started = performance.now()
    try {
      const { deleted, more, position } = await purgeBatch(this.system, purge, pass.position)
      const ms = Math.round(performance.now() - started)
      pass.deleted += deleted
      pass.position = position
      if (deleted > 0) this.log.debug({ purge: name, deleted, ms }, 'purged a batch')
      await pause(Math.max(MIN_PAUSE_MS, ms))
      if (more) return true
      pass.endedAt = Date.now()
      if (pass.deleted > 0) this.log.info({ purge: name, deleted: pass.deleted }, 'purged')
    } catch (error) {
      // The next sweep tries again from the same position.
      this.log.error({ err: error, purge: name }, 'a purge failed')
    }
    return false
  }
}
