import type { Database } from '../../db/postgres/connect.ts'
import { type RunCommand, runCommands } from '../../db/runs/commands.ts'
import { REFRESH } from '../../workflows/bundle/protocol.ts'
import type { Queue } from '../relay.ts'
import { workflowIdOf } from './runs.ts'
import { tellRun } from './unless-gone.ts'

/** Runs whose workflow must read the rows again, or end. Sending it twice is harmless. */
export const runCommandsQueue = (db: Database): Queue<RunCommand> => ({
  name: 'run commands',
  channel: 'agx_run_commands',
  claim: runCommands.claim,
  async start(client, row) {
    const workflow = client.workflow.getHandle(workflowIdOf(row))
    // A workflow that is about to start needs no signal: its first segment reads the rows.
    await tellRun(
      db.system,
      row,
      row.workflow_command === 'terminate'
        ? workflow.terminate(
            row.status === 'terminated' ? 'the run was terminated in the API' : 'the run has ended',
          )
        : workflow.signal(REFRESH),
    )
  },
  started: runCommands.release,
})
