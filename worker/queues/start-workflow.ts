import { type Client, type Workflow, WorkflowExecutionAlreadyStartedError } from '@temporalio/client'
import type { SearchAttributePair } from '@temporalio/common'
import type { Duration } from '@temporalio/common/lib/time.js'
import type { Logger } from '../../db/log.ts'
import { refusal } from '../relay.ts'
import { searchAttributes } from '../search-attributes.ts'

/** A claimed row as Temporal gets it. */
export interface Start<T extends Workflow> {
  workflow: string
  /** Of this row and start alone, for an id is used once. */
  workflowId: string
  organizationId: string
  /** The title in the Temporal UI. */
  summary: string
  /** Ids that an operator finds the row by. */
  memo: Record<string, unknown>
  attributes?: SearchAttributePair[]
  taskTimeout?: Duration
  args: Parameters<T>
}

export type StartWorkflow = <T extends Workflow>(client: Client, start: Start<T>) => Promise<void>

/**
 * How a queue starts its workflows: eagerly where this process can take them, fairly among organizations; "already
 * started" is success. Where the namespace lacks our search attributes they are left out from then on.
 */
export function workflowStarter(taskQueue: string, log: Logger): StartWorkflow {
  let lacking = false

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
        ...(!lacking && {
          typedSearchAttributes: [
            { key: searchAttributes.organization, value: organizationId },
            ...attributes,
          ],
        }),
      })
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return
      if (lacking || !/search attribute/i.test(refusal(error) ?? '')) throw error
      log.warn(
        { reason: refusal(error) },
        'the namespace lacks search attributes (AgxOrganization, …): workflows start without them',
      )
      lacking = true
      await start(client, options)
    }
  }
  return start
}
