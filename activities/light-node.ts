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
  /** Whether each node is undone alone when it fails, by a savepoint; else the segment must be done again with them. */
  savepoints: boolean
}

/** Without savepoints a node failed that may have written something. */
export class NeedsSavepoints extends Error {}

/**
 * Runs a pure, read or write node within its segment's transaction; one that fails leaves nothing behind. Throws
 * NeedsSavepoints.
 */
export async function runLightNode(
  options: LightNodeOptions,
  node: PlanNode,
  scope: Scope,
): Promise<Outcome> {
  if (node.effect === 'pure') return executeIn(options.tx, options, node, scope)
  if (!options.savepoints) {
    const outcome = await executeIn(options.tx, options, node, scope)
    if (outcome.status === 'failed') throw new NeedsSavepoints()
    return outcome
  }
  let failed: Outcome | undefined
  try {
    return await savepoint(options.tx, async (tx) => {
      const outcome = await executeIn(tx, options, node, scope)
      if (outcome.status !== 'failed') return outcome
      failed = outcome
      throw new Error('rolled back')
    })
  } catch (error) {
    if (failed) return failed
    throw error
  }
}

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
