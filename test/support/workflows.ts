import type { Tenant } from '../../db/postgres/tenancy.ts'
import { createWorkflow, type Workflow } from '../../db/workflows/workflows.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import type { Definition, Trigger } from '../../workflows/language/definition.ts'

const NOTHING: Definition = {
  name: 'Nothing',
  trigger: { type: 'manual' },
  inputs: {},
  nodes: [{ id: 'stop', type: 'stop', config: {} }],
  edges: [],
  outputs: {},
  settings: {},
}

/** Saves a workflow that does nothing, as a draft. Its trigger is not validated. */
export const createEmptyWorkflow = (tx: Tenant, trigger: Trigger = NOTHING.trigger): Promise<Workflow> =>
  createWorkflow(tx, { name: NOTHING.name, description: null, ...emptyVersion(trigger) })

/** The stored version of such a workflow. */
export function emptyVersion(trigger: Trigger) {
  const definition = { ...NOTHING, trigger }
  return { spec: null, definition, program: compile(definition) }
}
