import type { Runnable } from '../../db/workflows/workflows.ts'
import type { Program } from '../../workflows/definition/types.ts'

/** What a start of a run needs of its workflow. */
export type KnownWorkflow = Pick<Runnable, 'id' | 'name' | 'version'> & { inputs: Program['inputs'] }

/** How a request names a workflow. A name may look like an id. */
export type WorkflowReference = { name: string } | { id: string }

const MAX_WORKFLOWS = 1_000

/**
 * An LRU cache of the workflows that requests have started, by organization and the reference of the request. An entry may
 * be old: a start by it must check in its statement that nothing has changed.
 */
export class KnownWorkflows {
  private readonly workflows = new Map<string, KnownWorkflow>()

  get(organizationId: string, reference: WorkflowReference): KnownWorkflow | undefined {
    const key = keyOf(organizationId, reference)
    const known = this.workflows.get(key)
    if (known) this.put(key, known)
    return known
  }

  set(organizationId: string, reference: WorkflowReference, { id, name, version, plan }: Runnable): void {
    this.put(keyOf(organizationId, reference), { id, name, version, inputs: plan.inputs })
    const [oldest] = this.workflows.keys()
    if (this.workflows.size > MAX_WORKFLOWS && oldest) this.workflows.delete(oldest)
  }

  private put(key: string, known: KnownWorkflow): void {
    this.workflows.delete(key)
    this.workflows.set(key, known)
  }
}

const keyOf = (organizationId: string, reference: WorkflowReference) =>
  'name' in reference ? `${organizationId}:name:${reference.name}` : `${organizationId}:id:${reference.id}`
