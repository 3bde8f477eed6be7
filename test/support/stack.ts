import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type OtherPace, shareBundle } from './bundle.ts'
import { createTestDatabase } from './database.ts'
import { temporaryFolder } from './folder.ts'
import { searchFolder } from './planted.ts'
import { quietPort } from './quiet-port.ts'
import { reaper } from './reaper.ts'

/** Settings of a stack: no URL that a test makes up leaves the machine. */
export const LOCAL_ONLY = { EGRESS_ALLOW: '127.0.0.0/8', EGRESS_ONLY: '127.0.0.0/8' }

/** The processes of a running stack. */
export type ProcessName = 'supervisor' | 'api' | 'worker' | 'temporal' | 'postgres'

/** A stack started as by `npm start`, on free ports and with its own data folder. */
export interface TestStack {
  /** Without a trailing slash, like the other URLs. */
  apiUrl: string
  workerUrl: string
  temporalAddress: string
  temporalUiUrl: string
  taskQueue: string
  databaseUrl: string
  dataDir: string
  /** A key with every scope. */
  key: string
  owner: { email: string; password: string }
  /** The output of the supervisor so far. */
  output(): string
  pid(name: ProcessName): number
  /** Sends a signal to one process, by default SIGKILL. All processes except the supervisor are then restarted. */
  kill(name: ProcessName, signal?: NodeJS.Signals): void
  /** The supervisor's exit code or signal. */
  exited: Promise<number | NodeJS.Signals>
  /** Ends it by a signal, by default SIGTERM, and waits. The data folder is removed with the test process. */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>
}

export interface StackOptions {
  /** Settings in addition to those that isolate it. */
  env?: Record<string, string>
  /** A stopped stack whose data and ports to use again. */
  previous?: TestStack
  /**
   * It uses the suite's PostgreSQL and Temporal, with a database and a task queue of its own: half of the CPU time of a
   * start. It has neither to kill, and is not started again.
   */
  onSuite?: boolean
  /** A stack whose database and Temporal this one's api and worker share. Both need the same SECRETS_KEY. */
  beside?: TestStack
  /** Other values of the run workflow's pace. */
  pace?: OtherPace
}

const START_MILLISECONDS = 240_000

/** Resolves when the box is printed: everything is ready. Throws with its output if it ends before. */
export async function startStack({
  env: given = {},
  previous,
  onSuite = false,
  beside,
  pace,
}: StackOptions = {}): Promise<TestStack> {
  const database = onSuite ? await createTestDatabase() : undefined
  const shared = database
    ? {
        databaseUrl: database.url,
        temporalAddress: process.env.TEST_TEMPORAL_ADDRESS!,
        taskQueue: `test-${randomUUID()}`,
      }
    : beside
  const env: Record<string, string> = {
    ...(shared && {
      DATABASE_URL: shared.databaseUrl,
      TEMPORAL_ADDRESS: shared.temporalAddress,
      TEMPORAL_TASK_QUEUE: shared.taskQueue,
    }),
    ...given,
  }
  const known = previous ?? beside
  const dataDir = previous?.dataDir ?? temporaryFolder()
  await shareBundle(dataDir, pace)
  const ports = previous ? portsOf(previous) : await freePorts()
  const supervisor = spawnSupervisor({ DATA_DIR: dataDir, ...ports, ...env })
  const reap = reaper(cleanUp(supervisor.pid, dataDir))
  const deadline = setTimeout(() => supervisor.process.kill('SIGTERM'), START_MILLISECONDS)
  const ended = await Promise.race([supervisor.printed('agx is ready'), supervisor.exited])
  clearTimeout(deadline)
  if (ended !== undefined) {
    await reap()
    throw new Error(`the stack ended (${ended}):\n${supervisor.output()}`)
  }
  const pid = (name: ProcessName) => (name === 'supervisor' ? supervisor.pid : pidOf(name, dataDir))
  const shown = known ? { key: known.key, owner: known.owner } : secrets(supervisor.output())
  // The credentials that the box shows once must be nowhere else: in no log and no file of PostgreSQL or Temporal.
  const exited = supervisor.exited.then(async (code) => {
    searchFolder(dataDir, [shown.key, shown.owner.password])
    await database?.drop()
    return code
  })
  return {
    apiUrl: `http://localhost:${ports.PORT}`,
    workerUrl: `http://localhost:${ports.WORKER_PORT}`,
    temporalAddress: env.TEMPORAL_ADDRESS ?? `127.0.0.1:${ports.TEMPORAL_PORT}`,
    temporalUiUrl: `http://localhost:${ports.TEMPORAL_UI_PORT}`,
    taskQueue: env.TEMPORAL_TASK_QUEUE ?? 'agx',
    databaseUrl: env.DATABASE_URL ?? databaseUrl(dataDir),
    dataDir,
    ...shown,
    output: supervisor.output,
    pid,
    kill: (name, signal = 'SIGKILL') => process.kill(pid(name), signal),
    exited,
    stop(signal = 'SIGTERM') {
      supervisor.process.kill(signal)
      return exited
    },
  }
}

/** The supervisor alone, for starts that must fail: does not wait. */
export function spawnSupervisor(settings: Record<string, string>) {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(TEST_|TEMPORAL_|BOOTSTRAP_|DATABASE_|DATA_DIR|PORT|NODE_V8_COVERAGE)/.test(name),
  )
  const cli = process.env.TEMPORAL_CLI_PATH ? { TEMPORAL_CLI_PATH: process.env.TEMPORAL_CLI_PATH } : {}
  const child = spawn(process.execPath, ['worker/run.mjs', 'worker/dev/start.ts'], {
    cwd: fileURLToPath(new URL('../../', import.meta.url)),
    env: { ...Object.fromEntries(kept), ...cli, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  const exited = once(child, 'close').then(
    ([code, signal]: (number | NodeJS.Signals)[]) => (code ?? signal) as number | NodeJS.Signals,
  )
  return {
    process: child,
    pid: child.pid!,
    exited,
    output: () => output,
    async printed(text: string): Promise<undefined> {
      while (!output.includes(text)) await once(child.stdout, 'data')
    },
  }
}

/** The credentials that the box of a first start shows once. */
function secrets(output: string): Pick<TestStack, 'key' | 'owner'> {
  const key = /Demo key +(agx_\S+)/.exec(output)
  const owner = /Owner +(\S+), password (\S+)/.exec(output)
  if (!key || !owner) throw new Error(`no demo key or owner in the box:\n${output}`)
  return { key: key[1]!, owner: { email: owner[1]!, password: owner[2]! } }
}

function pidOf(name: Exclude<ProcessName, 'supervisor'>, dataDir: string): number {
  if (name === 'postgres')
    return Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
  const entries = JSON.parse(readFileSync(join(dataDir, 'processes.json'), 'utf8')) as {
    name: string
    pid: number
  }[]
  return entries.find((entry) => entry.name === name)!.pid
}

function databaseUrl(dataDir: string): string {
  const { password, port } = JSON.parse(readFileSync(join(dataDir, 'postgres.json'), 'utf8'))
  return `postgres://postgres:${password}@127.0.0.1:${port}/agx`
}

async function freePorts() {
  const [api, worker, temporal, ui] = await Promise.all([quietPort(), quietPort(), quietPort(), quietPort()])
  return {
    PORT: String(api),
    WORKER_PORT: String(worker),
    TEMPORAL_PORT: String(temporal),
    TEMPORAL_UI_PORT: String(ui),
  }
}

function portsOf(stack: TestStack) {
  const port = (url: string) => url.split(':').at(-1)!
  return {
    PORT: port(stack.apiUrl),
    WORKER_PORT: port(stack.workerUrl),
    TEMPORAL_PORT: port(stack.temporalAddress),
    TEMPORAL_UI_PORT: port(stack.temporalUiUrl),
  }
}

/** Ends the supervisor and all remaining processes, then removes the data: for a killed test process. */
function cleanUp(supervisor: number, dataDir: string): string {
  return `
    kill -TERM ${supervisor}
    for i in $(seq 150); do kill -0 ${supervisor} || break; sleep 0.1; done
    kill -KILL $(grep '"pid"' '${dataDir}/processes.json' | tr -dc '0-9\\n')
    kill -QUIT $(head -n 1 '${dataDir}/postgres/postmaster.pid')
    sleep 0.3
    rm -rf '${dataDir}'`
}
