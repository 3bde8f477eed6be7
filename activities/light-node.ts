import { fullMessage } from '../db/model/errors.ts'
import { sqlState } from '../db/postgres/sql-state.ts'
import { savepoint, type Tenant } from '../db/postgres/tenancy.ts'
import { storageExceeded } from '../db/storage/usage.ts'
import type { Failure } from '../workflows/interpret/execute.ts'
import { findNodeType } from '../workflows/nodes/index.ts'
import { UNEXPECTED } from './explain.ts'
import { type Attempt, failed, type NodeDeps, type Performed, performNode } from './perform-node.ts'

/**
 * Runs a pure, read or write node in a transaction. A read or write node runs in a savepoint: its failure undoes its
 * writes, and a refused statement does not abort the transaction.
 * @param withSavepoint false: throws an error for which `needsSavepoints` is true if the node fails. The transaction
 * must then be repeated with savepoints.
 */
export async function runLightNode(
  deps: NodeDeps,
  tx: Tenant,
  attempt: Omit<Attempt, 'tx' | 'attempt' | 'timeoutMs' | 'hold' | 'reach'>,
  withSavepoint = true,
): Promise<Performed> {
  // A node in a transaction has no retries and no timeout of its own, and calls nobody.
  const perform = (tx: Tenant | undefined) =>
    performNode(deps, {
      ...attempt,
      tx,
      attempt: 1,
      timeoutMs: Infinity,
      hold: () => () => {},
      reach: () => {},
    })
  if (attempt.node.effect === 'pure') return perform(undefined)
  if (attempt.full && findNodeType(attempt.node.type)?.grows(attempt.node.config))
    return failed(await whileFull(tx))
  if (!withSavepoint) {
    const performed = await perform(tx)
    if (performed.outcome.status === 'failed') throw new NeedsSavepoints()
    return performed
  }
  let result: Performed | undefined
  await savepoint(tx, async (inner) => {
    result = await perform(inner)
    if (result.outcome.status === 'failed') throw new Undo()
  }).catch((error: unknown) => {
    if (error instanceof Undo) return
    if (sqlState(error) !== IN_FAILED_TRANSACTION) throw error
    // The node continued after a refused statement, so its later ones and the release of the savepoint failed.
    deps.log.error(
      { run_id: attempt.state.run.id, node: attempt.node.id },
      'a node ignored a refused statement',
    )
    result = failed(UNEXPECTED, result?.outcome.input)
  })
  return result!
}

/** The failure of a node that has written nothing. */
async function whileFull(tx: Tenant): Promise<Failure> {
  const error = await storageExceeded(tx)
  return { error: { code: error.type, message: fullMessage(error) }, retryable: false }
}

/** A node without a savepoint failed: its writes can only be undone with the whole transaction. */
class NeedsSavepoints extends Error {}

/** Whether a transaction without savepoints must be repeated with them. */
export const needsSavepoints = (error: unknown): boolean =>
  error instanceof NeedsSavepoints || sqlState(error) === IN_FAILED_TRANSACTION

const IN_FAILED_TRANSACTION = '25P02'

/** Rolls the savepoint of a failed node back. */
class Undo extends Error {}
