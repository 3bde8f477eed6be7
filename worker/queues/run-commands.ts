import { WorkflowNotFoundError } from '@temporalio/client'
import { claimRunCommands, markCommandsSent, type RunCommand } from '../../db/runs/commands.ts'
import { REFRESH } from '../../workflows/protocol.ts'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'

/** Runs whose workflow must read the rows again, or end. Sending it twice is harmless. */
export const runCommandsQueue: Queue<RunCommand> = {
  name: 'run commands',
  channel: 'agx_run_commands',
  claim: claimRunCommands,
  async start(client, row) {
    const workflow = client.workflow.getHandle(workflowIdOf(row))
    try {
      if (row.command === 'terminate') await workflow.terminate('the run was terminated in the API')
      else await workflow.signal(REFRESH)
    } catch (error) {
      // It has ended, or is about to start: its first segment reads the rows.
      if (!(error instanceof WorkflowNotFoundError)) throw error
    }
  },
  started: markCommandsSent,
  async refused() {},
}
