import type { Traces } from '../db/model/spans.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Embeddings } from '../db/process/embeddings.ts'
import type { Logger } from '../db/process/log.ts'
import type { SecretsKey } from '../db/process/seal.ts'
import { nodeTypes } from '../workflows/nodes/index.ts'
import { createAdvance } from './advance.ts'
import type { LightWork } from './compute/light-work.ts'
import type { EffectFactories } from './effects/define.ts'
import { createEmbedSome } from './embed-some.ts'
import { createFire } from './fire.ts'
import { Programs } from './programs.ts'
import { createRunNode } from './run-node.ts'
import { CallSlots } from './slots/call-slots.ts'
import { createTestNode } from './test-node.ts'

export interface ActivityDeps {
  db: Database
  log: Logger
  /** From `createEffects`. */
  effects: EffectFactories
  /** Computes for light nodes in threads. */
  lightWork: LightWork
  /** Opens the values that the API has sealed. 32 bytes. */
  secretsKey: SecretsKey
  /** Absent if traces are not configured. */
  traces?: Traces | undefined
  /** The base URL of the API, for links to runs in the Temporal UI. */
  publicUrl: string | undefined
  /** The time limit of the test of a node, in milliseconds; default: a minute. */
  nodeTestMs?: number | undefined
  /** The slots for calls, one set for all activities of the process; default: of the usual size. */
  slots?: CallSlots | undefined
  /** The pool of this worker, if it is in one: its activities then refuse the nodes of others. */
  pool?: string | undefined
  /** Takes the milliseconds that Temporal needed to continue a run after a timer or an external node. */
  recordDelay?: ((milliseconds: number) => void) | undefined
  /** Whether the namespace has a search attribute; default: it has each. */
  hasAttribute?: (name: string) => boolean
}

/**
 * The activities of runs by name: `advance`, the test of a node, and one for each node type. And `embedSome`, whose calls
 * share the slots of theirs.
 */
export function createActivities(dependencies: ActivityDeps & { embeddings: Embeddings }) {
  const { slots = new CallSlots() } = dependencies
  const deps = { ...dependencies, slots, programs: new Programs() }
  return {
    ...callsOf(deps),
    ...createFire(deps),
    advance: createAdvance(deps),
    embedSome: createEmbedSome(deps),
  }
}

/** The activities of a worker in a pool: the external nodes and their tests. */
export const createPoolActivities = (dependencies: ActivityDeps & { pool: string }) =>
  callsOf({ ...dependencies, programs: new Programs() })

function callsOf(dependencies: ActivityDeps & { programs: Programs }) {
  const deps = { ...dependencies, slots: dependencies.slots ?? new CallSlots() }
  const runNode = createRunNode(deps)
  return {
    ...Object.fromEntries(Object.keys(nodeTypes).map((type) => [type, runNode])),
    testOneNode: createTestNode(deps),
  }
}
