import { v7 as uuidv7 } from 'uuid'
import type { NewEvent } from '../db/events/outbox.ts'
import type { Logger } from '../db/log.ts'
import { savepoint, type Tenant } from '../db/postgres/tenancy.ts'
import type { PlanNode } from '../workflows/definition/types.ts'
import type { Scope } from '../workflows/expressions/liquid.ts'
import type { RunState } from '../workflows/interpret/run-state.ts'
import { contextOf, type RecordsOf } from './context.ts'
import { execute, type Outcome } from './execute.ts'

export interface LightNodeOptions {
  tx: Tenant
  state: RunState
  /** The time of the segment. */
  now: Date
  /** Takes the events that the node raises; they are written with its row. */
  raise(event: NewEvent): void
  recordsOf: RecordsOf
  log: Logger
}

/**
 * Runs a pure, read or write node within its segment's transaction. One that reads or writes runs in a savepoint: when
 * it fails, what it wrote is undone, and a statement that PostgreSQL refused does not break the transaction.
 */
export async function runLightNode(
  options: LightNodeOptions,
  node: PlanNode,
  scope: Scope,
): Promise<Outcome> {
  if (node.effect === 'pure') return executeIn(options.tx, options, node, scope)
  let outcome: Outcome | undefined
  await savepoint(options.tx, async (tx) => {
    outcome = await executeIn(tx, options, node, scope)
    if (outcome.status === 'failed') throw new Undo()
  }).catch((error: unknown) => {
    if (!(error instanceof Undo)) throw error
  })
  return outcome!
}

/** Makes the savepoint undo what a failed node wrote. */
class Undo extends Error {}

async function executeIn(
  tx: Tenant,
  { state, now, raise, recordsOf, log }: LightNodeOptions,
  node: PlanNode,
  scope: Scope,
): Promise<Outcome> {
  const raised: NewEvent[] = []
  const emit = async (name: string, data: Record<string, unknown>) => {
    const id = uuidv7()
    raised.push({ id, name, data })
    return id
  }
  const context = contextOf(state, {
    now,
    node: { id: node.id, attempt: 1 },
    signal: NEVER,
    effects: {
      ...(node.effect === 'pure' ? {} : { records: recordsOf(tx) }),
      ...(node.effect === 'write' ? { emit } : {}),
    },
  })
  const outcome = await execute(node, scope, context, log)
  if (outcome.status !== 'failed') for (const event of raised) raise(event)
  return outcome
}

/** What is inside the transaction is not waited for and has no time limit of its own. */
const NEVER = new AbortController().signal
