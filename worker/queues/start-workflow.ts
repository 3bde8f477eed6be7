import { type Client, type Workflow, WorkflowExecutionAlreadyStartedError } from '@temporalio/client'
import type { SearchAttributePair } from '@temporalio/common'
import type { Duration } from '@temporalio/common/lib/time.js'
import type { Logger } from '../../db/log.ts'
import { refusal } from '../relay.ts'
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
 * started" counts as success. If the namespace lacks our search attributes, later starts omit them.
 */
export function workflowStarter(taskQueue: string, log: Logger): StartWorkflow {
  let omitAttributes = false

  async function start<T extends Workflow>(client: Client, options: Start<T>): Promise<boolean> {
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
    try {
      await client.workflow.start<Workflow>(workflow, {
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
        ...(!omitAttributes && {
          typedSearchAttributes: [
            { key: searchAttributes.organization, value: organizationId },
            ...attributes,
          ],
        }),
      })
      return true
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return false
      if (omitAttributes || !/search attribute/i.test(refusal(error) ?? '')) throw error
      log.warn(
        { reason: refusal(error) },
        'the namespace lacks search attributes (AgxOrganization, …): workflows start without them',
      )
      omitAttributes = true
      return start(client, options)
    }
  }
  return start
}
