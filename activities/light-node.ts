import type { Logger } from '../db/log.ts'
import { sqlState } from '../db/postgres/sql-state.ts'
import { savepoint, type Tenant } from '../db/postgres/tenancy.ts'
import type { EffectFactories } from './effects/define.ts'
import { UNEXPECTED } from './explain.ts'
import { type Attempt, failed, type Performed, performNode } from './perform-node.ts'

/**
 * Runs a pure, read or write node in a transaction. One that reads or writes runs in a savepoint: when it fails, what it
 * wrote is undone, and a statement that PostgreSQL refused does not break the transaction.
 */
export async function runLightNode(
  deps: { effects: EffectFactories; log: Logger },
  tx: Tenant,
  attempt: Omit<Attempt, 'tx' | 'attempt' | 'timeoutMs'>,
): Promise<Performed> {
  // Nothing in a transaction is retried or has a time limit of its own.
  const perform = (tx: Tenant | undefined) =>
    performNode(deps, { ...attempt, tx, attempt: 1, timeoutMs: Infinity })
  if (attempt.node.effect === 'pure') return perform(undefined)
  let result: Performed | undefined
  await savepoint(tx, async (inner) => {
    result = await perform(inner)
    if (result.outcome.status === 'failed') throw new Undo()
  }).catch((error: unknown) => {
    if (error instanceof Undo) return
    if (sqlState(error) !== IN_FAILED_TRANSACTION) throw error
    // The node went on after a refused statement, so that its later ones and the savepoint's release failed.
    deps.log.error(
      { run_id: attempt.state.run.id, node: attempt.node.id },
      'a node ignored a refused statement',
    )
    result = failed(UNEXPECTED, result?.outcome.input)
  })
  return result!
}

const IN_FAILED_TRANSACTION = '25P02'

/** Makes the savepoint undo what a failed node wrote. */
class Undo extends Error {}
