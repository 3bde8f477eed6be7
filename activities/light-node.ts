import { insertEvents } from '../db/events.ts'
import type { Logger } from '../db/log.ts'
import type { RunState } from '../db/run-state.ts'
import { savepoint, type Tenant } from '../db/tenancy.ts'
import type { PlanNode } from '../workflows/definition/types.ts'
import type { Scope } from '../workflows/expressions/liquid.ts'
import { contextOf, type RecordsOf } from './context.ts'
import { execute, type Outcome } from './execute.ts'

export interface LightNodeOptions {
  tx: Tenant
  state: RunState
  /** The time of the segment. */
  now: Date
  recordsOf: RecordsOf
  log: Logger
}

/** Runs a pure, read or write node within its segment's transaction; one that fails leaves nothing behind. */
export async function runLightNode(
  options: LightNodeOptions,
  node: PlanNode,
  scope: Scope,
): Promise<Outcome> {
  if (node.effect === 'pure') return executeIn(options.tx, options, node, scope)
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

function executeIn(
  tx: Tenant,
  { state, now, recordsOf, log }: LightNodeOptions,
  node: PlanNode,
  scope: Scope,
): Promise<Outcome> {
  const emit = async (name: string, data: Record<string, unknown>) => {
    const [id] = await insertEvents(tx, [{ name, data }])
    return id!
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
  return execute(node, scope, context, log)
}

/** What is inside the transaction is not waited for and has no time limit of its own. */
const NEVER = new AbortController().signal
