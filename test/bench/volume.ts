import { planOf, statementsOf } from '../support/plans.ts'
import { fillVolume } from '../support/volume.ts'
import { volumeWork } from '../support/volume-statements.ts'
import { withOwnPostgres } from './own-postgres.ts'
import { print } from './report.ts'

/**
 * The time and the plan of statements of purges, claims, the sweep and lists, with `rows` rows in each growing table.
 */
export const benchVolume = (rows: number): Promise<void> =>
  withOwnPostgres(async (db, owner) => {
    const started = performance.now()
    const organizations = await fillVolume(owner, rows)
    print(`${rows} rows in each growing table, filled in ${seconds(started)} s`)
    for (const [name, work] of Object.entries(volumeWork(organizations))) {
      const began = performance.now()
      const statements = await statementsOf(db, work)
      print(`${name.padEnd(28)} ${Math.round(performance.now() - began)} ms`)
      for (const statement of statements) {
        const plan = await planOf(owner, statement)
        const scans = plan.scanned.length > 0 ? `  scans ${plan.scanned.join(', ')}` : ''
        print(`    ${plan.ms.toFixed(1).padStart(7)} ms  ${plan.rows} rows${scans}  ${plan.nodes.join(', ')}`)
      }
    }
  })

const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(0)
