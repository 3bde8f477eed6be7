import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import { msToTs } from '@temporalio/common/lib/time.js'
import { attributeDefinitions, searchAttributes } from '../search-attributes.ts'

/**
 * The defaults of the development server cost 50 ms per hop and stalls of seconds; with these a hop takes under 10 ms.
 * The server stores in SQLite: WAL with synchronous=normal survives a crash of the process.
 */
export const DYNAMIC_CONFIG = {
  'history.transferProcessorMaxPollRPS': 10_000,
  'history.timerProcessorMaxPollRPS': 10_000,
  'history.timerProcessorMaxTimeShift': '10ms',
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'matching.useNewMatcher': true,
  'matching.enableFairness': true,
  'system.enableActivityEagerExecution': true,
  // SQLite has one connection. With the default of 512 workers for each queue, tasks that wait for it exceed their
  // deadline of 3 s once the machine is busy, and their retries keep it busy: runs made no progress any more.
  'history.transferProcessorSchedulerWorkerCount': 16,
  'history.timerProcessorSchedulerWorkerCount': 16,
  'history.visibilityProcessorSchedulerWorkerCount': 4,
  // More events than the default of 100 during a workflow task make the server fail the task, which the SDK does not
  // always survive: 200 timers of loops that fire together are enough.
  'history.maximumBufferedEventsBatch': 1_000,
  // The CLI's default, true, reads the namespace and the cluster's metadata from SQLite in each request: half of all
  // reads.
  'system.forceSearchAttributesCacheRefreshOnRead': false,
}

/** How long closed runs stay in the Temporal UI; the default is 24 hours. */
const RETENTION = msToTs('30 days')

export interface ServerOptions {
  dbFile: string
  port: number
  /** Without it the UI is not started. */
  uiPort?: number
  /** Default: `default`. */
  namespace?: string
}

/** The arguments of the Temporal CLI that start the development server. */
export function serverArguments({ dbFile, port, uiPort, namespace }: ServerOptions): string[] {
  return [
    'server',
    'start-dev',
    '--ip',
    '127.0.0.1',
    '--port',
    String(port),
    '--db-filename',
    dbFile,
    ...(namespace === undefined ? [] : ['--namespace', namespace]),
    ...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort)]),
    '--log-level',
    'error',
    '--log-format',
    'json',
    ...['journal_mode=wal', 'synchronous=normal'].flatMap((pragma) => ['--sqlite-pragma', pragma]),
    ...Object.entries(DYNAMIC_CONFIG).flatMap(([key, value]) => [
      '--dynamic-config-value',
      `${key}=${JSON.stringify(value)}`,
    ]),
    ...attributeDefinitions.flatMap((definition) => ['--search-attribute', definition]),
  ]
}

/**
 * Waits until the server at `address` serves `namespace` and knows our search attributes there, which the CLI registers
 * after the start; sets the retention of closed runs to 30 days.
 */
export async function prepareServer(address: string, namespace: string, milliseconds: number): Promise<void> {
  const deadline = Date.now() + milliseconds
  for (;;) {
    try {
      const connection = await Connection.connect({ address, connectTimeout: 1_000 })
      try {
        await keepClosedRuns(connection, namespace)
        // Throws INVALID_ARGUMENT as long as an attribute is unknown. A run that is started then would not have them.
        await connection.workflowService.countWorkflowExecutions({ namespace, query: USES_ATTRIBUTES })
        return
      } finally {
        await connection.close()
      }
    } catch (error) {
      if (Date.now() > deadline) throw error
      await sleep(50)
    }
  }
}

const USES_ATTRIBUTES = Object.values(searchAttributes)
  .map(({ name }) => `${name} is not null`)
  .join(' and ')

async function keepClosedRuns({ workflowService }: Connection, namespace: string): Promise<void> {
  const { config } = await workflowService.describeNamespace({ namespace })
  if (String(config?.workflowExecutionRetentionTtl?.seconds) === String(RETENTION.seconds)) return
  await workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: RETENTION },
  })
}
