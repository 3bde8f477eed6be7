import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { requireTemporal } from '../../db/process/temporal-answers.ts'
import { type Child, type Part, startChild } from './child.ts'
import type { StartConfig } from './config.ts'
import { FLAGS } from './flags.ts'
import { type EmbeddedPostgres, startPostgres } from './postgres/server.ts'
import type { ProcessRecord } from './process-record.ts'
import { announced, say } from './say.ts'
import { prepareServer, serverArguments } from './temporal-server.ts'
import { watch } from './watch.ts'

/** API and worker compile at start, which is slow on a small machine. */
const READY_MILLISECONDS = 60_000
const POSTGRES_CHECK_MILLISECONDS = 250

const TEMPORAL_STOP_MILLISECONDS = 5_000
const TEMPORAL_ANSWER_MILLISECONDS = 5_000
/** Longer than api and worker take to end by themselves once their grace time is over. */
const EXIT_MILLISECONDS = 10_000

/** The shared state of a running stack. */
export interface Stack {
  config: StartConfig
  env: NodeJS.ProcessEnv
  record: ProcessRecord
  /** Undefined if TEMPORAL_ADDRESS names a server. */
  temporalCli: string | undefined
  /** In start order; stopped in reverse. */
  parts: Part[]
  signal: AbortSignal
}

export const logFile = (config: StartConfig, name: string) => join(config.DATA_DIR, 'logs', `${name}.log`)

export async function startEmbeddedPostgres({
  config,
  parts,
}: Stack): Promise<Pick<EmbeddedPostgres, 'ownerUrl' | 'urls'>> {
  const options = {
    dataDir: config.DATA_DIR,
    logFile: logFile(config, 'postgres'),
    port: config.POSTGRES_PORT,
  }
  let server = await announced('starting PostgreSQL', startPostgres(options))
  if (server.adopted) say('PostgreSQL was still running; it is reused')
  if (!server.folder.startsWith(config.DATA_DIR))
    say(`the PostgreSQL user cannot access DATA_DIR; its data is in ${server.folder}`)
  let restarting: Promise<EmbeddedPostgres> | undefined
  const watch = setInterval(() => {
    if (server.running() || restarting) return
    say(`postgres ended; restarting; log: ${options.logFile}`)
    restarting = startPostgres({ ...options, port: server.port })
    restarting.then(
      (restarted) => {
        server = restarted
        restarting = undefined
      },
      (error: Error) => {
        say(error.message)
        restarting = undefined
      },
    )
  }, POSTGRES_CHECK_MILLISECONDS)
  parts.push({
    name: 'postgres',
    async stop() {
      clearInterval(watch)
      await restarting?.catch(() => {})
      await server.stop()
    },
  })
  return server
}

/** @returns the server's address. */
export async function startEmbeddedTemporal(stack: Stack, cli: string): Promise<string> {
  const { config, env } = stack
  const address = `127.0.0.1:${config.TEMPORAL_PORT}`
  const args = serverArguments({
    dbFile: join(config.DATA_DIR, 'temporal.db'),
    port: config.TEMPORAL_PORT,
    uiPort: config.TEMPORAL_UI_PORT,
    namespace: config.TEMPORAL_NAMESPACE,
  })
  const child = start(stack, 'temporal', cli, args, env, TEMPORAL_STOP_MILLISECONDS)
  const prepared = prepareServer(address, config.TEMPORAL_NAMESPACE, READY_MILLISECONDS)
  await announced('starting Temporal', untilReady(child, prepared))
  const watched = watch({
    ask: () => requireTemporal({ address }, config.TEMPORAL_NAMESPACE, TEMPORAL_ANSWER_MILLISECONDS),
    pid: child.pid,
    hangs(milliseconds, reason) {
      const seconds = Math.round(milliseconds / 1_000)
      say(
        `temporal runs, but every call has failed for ${seconds} s (${reason}); killing it; nothing is lost`,
      )
      child.kill()
    },
  })
  stack.parts.push({ name: 'watch of temporal', stop: async () => watched.stop() })
  return address
}

/** glibc's malloc keeps an arena per thread; a limit of two saves another 30 MB. */
const MALLOC = { MALLOC_ARENA_MAX: '2' }

/** Starts `api/main.ts` or `worker/main.ts` and waits until /readyz answers 200. */
export async function startProcess(
  stack: Stack,
  name: 'api' | 'worker',
  port: number,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const args = [...FLAGS[name], 'worker/run.mjs', `${name}/main.ts`]
  const { SHUTDOWN_DELAY, SHUTDOWN_GRACE } = stack.config
  const stopMilliseconds = (SHUTDOWN_DELAY + SHUTDOWN_GRACE) * 1_000 + EXIT_MILLISECONDS
  const child = start(stack, name, process.execPath, args, { ...MALLOC, ...env }, stopMilliseconds)
  const url = `http://${localAddress(stack.config.HOST)}:${port}/readyz`
  await announced(`starting ${name}`, untilReady(child, pollReady(url, stack.signal)))
}

/** The host in a local URL for a server that listens on `host`. */
function localAddress(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function start(
  stack: Stack,
  name: string,
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  stopMilliseconds: number,
): Child {
  const child = startChild({
    name,
    command,
    args,
    env,
    cwd: fileURLToPath(new URL('../../', import.meta.url)),
    logFile: logFile(stack.config, name),
    stopMilliseconds,
    spawned: (pid) => stack.record.add(name, pid),
    say,
  })
  stack.parts.push(child)
  return child
}

async function untilReady(child: Child, ready: Promise<void>): Promise<void> {
  const death = await Promise.race([ready, child.diedEarly])
  if (death !== undefined) throw new Error(death)
  child.ready()
}

async function pollReady(url: string, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + READY_MILLISECONDS
  let answer = 'no answer'
  while (Date.now() < deadline) {
    signal.throwIfAborted()
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
      if (response.ok) return
      answer = `${response.status} ${await response.text()}`
    } catch {}
    await sleep(50)
  }
  throw new Error(`${url} did not become ready: ${answer}`)
}
