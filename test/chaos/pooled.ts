import { setTimeout as pause } from 'node:timers/promises'
import { acknowledgedIn } from '../load/ledger.ts'
import { hasPgBouncer } from '../support/pgbouncer.ts'
import type { Fault } from './situation.ts'

const BETWEEN_KILLS_MS = 10_000
const KILLS = 2

/** The second api and worker reach PostgreSQL through PgBouncer, and carry the load alone. */
export const pooled: Fault = {
  name: 'pgbouncer',
  title: 'one api and one worker work alone, through PgBouncer in session mode, which is killed twice',
  kind: 'outage',
  missing: () => (hasPgBouncer() ? undefined : 'PgBouncer is not installed (apt-get install pgbouncer)'),
  second: true,
  system: { pgBouncer: true },
  async strike({ system, load: { ledger } }) {
    await system.down(['api', 'worker'], async () => {
      for (let part = 0; part <= KILLS; part++) {
        const before = acknowledgedIn(ledger)
        await pause(BETWEEN_KILLS_MS)
        if (acknowledgedIn(ledger) === before) throw new Error('no request was answered through PgBouncer')
        if (part < KILLS) await system.pgBouncer!.restart()
      }
    })
    return {}
  },
}
