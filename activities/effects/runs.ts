import { findChild, startChild } from '../../db/runs/children.ts'
import type { Runs } from '../../workflows/effects/runs.ts'
import { type EffectHost, transactionOf } from './define.ts'

/** Child runs, queued in the transaction of the node. After a reset the node finds the run that it started before. */
export function runsOf(host: EffectHost): Runs {
  const tx = transactionOf(host)
  return {
    start: (workflow, inputs) =>
      host.once(
        'run',
        (id) => findChild(tx, id),
        () => startChild(tx, workflow, inputs),
        ({ run_id }) => run_id,
      ),
  }
}
