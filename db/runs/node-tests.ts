import { v7 as uuidv7 } from 'uuid'
import type { TestedNode } from '../../workflows/interpret/run-state.ts'
import type { Stub, TestCase } from '../../workflows/interpret/test-case.ts'
import type { Program } from '../../workflows/language/definition.ts'
import { ENGINE } from '../../workflows/nodes/engine.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { open, type SecretsKey, seal } from '../process/seal.ts'

/**
 * The values of a node test. They may contain credentials, so they are sealed, and removed when the test ends (moves/).
 */
export interface TestValues {
  config: Record<string, unknown>
  /** Sample values by placeholder root. */
  inputs: Record<string, unknown>
  /** A loop of a workflow with its body. */
  program?: Program | undefined
  /** The tests of a workflow, whose program it is; config and inputs are empty then. */
  cases?: TestCase[] | undefined
  /** The stubs of all cases that have no other ones. */
  stubs?: Record<string, Stub> | undefined
  /** The saved workflow of the cases. */
  workflow_id?: string | undefined
}

/** Queues the test of one node. @returns its id. */
export async function createNodeTest(
  tx: Tenant,
  secretsKey: SecretsKey,
  { node_type, title, pool, ...values }: TestValues & { node_type: string; title: string; pool?: string },
): Promise<string> {
  const id = uuidv7()
  const sealed = seal(secretsKey, JSON.stringify(values))
  const node: TestedNode = { node_type, title, ...(pool === undefined ? {} : { pool }), sealed }
  await tx.trx('runs').insert({
    organization_id: tx.organizationId,
    id,
    kind: 'node_test',
    engine: ENGINE,
    workflow_name: `Test of ${node_type}`,
    trigger: JSON.stringify({ type: 'node_test' }),
    inputs: '{}',
    node: JSON.stringify(node),
    starts_with: title,
  })
  tx.wake('agx_runs')
  return id
}

/** The opened values. Undefined if they were sealed with another SECRETS_KEY, or if the test has ended. */
export function openTestValues(secretsKey: SecretsKey, { sealed }: TestedNode): TestValues | undefined {
  if (sealed === undefined) return undefined
  try {
    return JSON.parse(open(secretsKey, sealed)) as TestValues
  } catch {
    return undefined
  }
}
