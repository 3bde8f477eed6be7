import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker'
import { v7 as uuidv7 } from 'uuid'
import { withWorkflowThreads } from '../../worker/workflow-threads.ts'
import { type LoadResult, summary } from './load.ts'

export interface Floor {
  taskQueue: string
  /** Runs `clients` closed loops of start and result, for `seconds`. */
  measure(clients: number, seconds: number): Promise<LoadResult>
  close(): Promise<void>
}

/**
 * A worker and a client with eager start, for a hand-written workflow with the local activity `work`, once or `times` in
 * a row. Its workflow threads have the same setting as those of the measured stack.
 */
export async function startFloor(address: string, work: () => Promise<void>, times = 1): Promise<Floor> {
  Runtime.install({ logger: new DefaultLogger('ERROR') })
  const connection = await NativeConnection.connect({ address })
  const taskQueue = `floor-${uuidv7()}`
  const workflowBundle = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./floor-workflow.ts', import.meta.url)),
  })
  const create = () =>
    Worker.create({
      connection,
      taskQueue,
      workflowBundle,
      activities: { work },
      workflowTaskPollerBehavior: { type: 'autoscaling', initial: 5 },
      maxConcurrentWorkflowTaskExecutions: 100,
      maxConcurrentLocalActivityExecutions: 100,
      maxCachedWorkflows: 1_000,
    })
  const stackTraces = process.env.WORKFLOW_STACK_TRACES === 'true'
  const worker = await withWorkflowThreads({ stackTraces }, create)
  const running = worker.run()
  const client = new Client({ connection })
  const once = () =>
    client.workflow.execute('floor', {
      taskQueue,
      workflowId: `floor:${uuidv7()}`,
      requestEagerStart: true,
      args: [times],
    })
  await once()
  return {
    taskQueue,
    async measure(clients, seconds) {
      const times: number[] = []
      const started = performance.now()
      await Promise.all(
        Array.from({ length: clients }, async () => {
          while (performance.now() - started < seconds * 1_000) {
            const sent = performance.now()
            await once()
            times.push(performance.now() - sent)
          }
        }),
      )
      return summary(times, (performance.now() - started) / 1_000)
    },
    async close() {
      worker.shutdown()
      await running
      await connection.close()
    },
  }
}
