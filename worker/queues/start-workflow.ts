import { type Client, type Workflow, WorkflowExecutionAlreadyStartedError } from '@temporalio/client'
import type { SearchAttributePair } from '@temporalio/common'
import type { Duration } from '@temporalio/common/lib/time.js'
import type { NamespaceAttributes } from '../namespace-attributes.ts'
import { searchAttributes } from '../search-attributes.ts'

/** The workflow start of a claimed row. */
export interface Start<T extends Workflow> {
  workflow: string
  /** Unique for this row and start: a workflow id is used once. */
  workflowId: string
  organizationId: string
  /** The title in the Temporal UI. */
  summary: string
  /** Ids by which an operator finds the row. */
  memo: Record<string, unknown>
  attributes?: SearchAttributePair[]
  taskTimeout?: Duration
  /** Starts it although a closed workflow has this id. */
  again?: boolean
  args: Parameters<T>
}

/** @returns false if a workflow of this id existed. */
export type StartWorkflow = <T extends Workflow>(client: Client, start: Start<T>) => Promise<boolean>

/**
 * Starts the workflows of a queue: eagerly if this process has a free slot, fairly among organizations; "already
 * started" counts as success.
 */
export function workflowStarter(taskQueue: string, known: NamespaceAttributes): StartWorkflow {
  return async (client, options) => {
    const {
      workflow,
      workflowId,
      organizationId,
      summary,
      memo,
      attributes = [],
      taskTimeout,
      again = false,
      args,
    } = options
    const all = [{ key: searchAttributes.organization, value: organizationId }, ...attributes]
    const start = (typedSearchAttributes: SearchAttributePair[]) =>
      client.workflow.start<Workflow>(workflow, {
        taskQueue,
        workflowId,
        args,
        memo: { organization_id: organizationId, ...memo },
        requestEagerStart: true,
        workflowIdReusePolicy: again ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
        workflowIdConflictPolicy: 'FAIL',
        staticSummary: summary,
        priority: { fairnessKey: organizationId },
        ...(taskTimeout && { workflowTaskTimeout: taskTimeout }),
        typedSearchAttributes,
      })
    try {
      await known.apply(client, (select) => start(select(all)))
      return true
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return false
      throw error
    }
  }
}
