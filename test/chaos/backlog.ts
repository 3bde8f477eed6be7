import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from '../../db/postgres/connect.ts'
import { haveEnded } from '../load/account.ts'
import { startBacklog } from '../load/operations.ts'
import type { Fault } from './situation.ts'

const RUNS = 2_000
const AT_ONCE = 20
const DRAIN_MS = 300_000
/** The level of warnings in the log. */
const WARNING = 40

/**
 * Runs that are queued while the worker is down. It must start each once, and without a warning: one that fails is
 * repeated, but tells that the worker takes on more than it can.
 */
export const backlogStarted: Fault = {
  name: 'backlog',
  title: `${RUNS.toLocaleString('en')} runs are queued while the worker is down`,
  kind: 'outage',
  async strike({ system, load }) {
    const log = join(system.stack.dataDir, 'logs', 'worker.log')
    let before = 0
    await system.down(['worker'], async () => {
      before = readFileSync(log).length
      await startBacklog(load, RUNS, AT_ONCE)
    })
    const db = connect({ url: system.databaseUrl, poolSize: 2 })
    const ids = load.ledger.backlog.map(({ id }) => id)
    const isDrained = await haveEnded(db, ids, DRAIN_MS).finally(() => db.close())
    if (!isDrained) throw new Error(`the backlog has not ended within ${DRAIN_MS / 1_000} s`)
    const warnings = readFileSync(log).subarray(before).toString().split('\n').filter(isWarning)
    if (warnings.length > 0)
      throw new Error(`${warnings.length} starts have failed, first of all: ${warnings[0]}`)
    return {}
  },
}

/** Whether it is a warning of a queue of the relay, or no JSON, such as the report of a crash. */
function isWarning(line: string): boolean {
  if (line.trim() === '') return false
  try {
    const { level, queue } = JSON.parse(line) as { level: number; queue?: string }
    return level >= WARNING && queue !== undefined
  } catch {
    return true
  }
}
