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
  args: Parameters<T>
}

export type StartWorkflow = <T extends Workflow>(client: Client, start: Start<T>) => Promise<void>

/**
 * Starts the workflows of a queue: eagerly if this process has a free slot, fairly among organizations; "already
 * started" counts as success. If the namespace lacks our search attributes, later starts omit them.
 */
export function workflowStarter(taskQueue: string, log: Logger): StartWorkflow {
  let omitAttributes = false

  async function start<T extends Workflow>(client: Client, options: Start<T>): Promise<void> {
    const {
      workflow,
      workflowId,
      organizationId,
      summary,
      memo,
      attributes = [],
      taskTimeout,
      args,
    } = options
    try {
      await client.workflow.start<Workflow>(workflow, {
        taskQueue,
        workflowId,
        args,
        memo: { organization_id: organizationId, ...memo },
        requestEagerStart: true,
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
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
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return
      if (omitAttributes || !/search attribute/i.test(refusal(error) ?? '')) throw error
      log.warn(
        { reason: refusal(error) },
        'the namespace lacks search attributes (AgxOrganization, …): workflows start without them',
      )
      omitAttributes = true
      await start(client, options)
    }
  }
  return start
}
