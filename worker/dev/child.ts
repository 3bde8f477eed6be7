import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** A larger log is rotated at the next start. */
const MAX_LOG_BYTES = 20_000_000
/** A process that ran for so long is started again at once; one that ends sooner waits longer each time. */
const STABLE_MILLISECONDS = 5_000
const MAX_DELAY = 10_000

/** A part of the stack that runs until it is stopped. */
export interface Part {
  name: string
  stop(): Promise<void>
}

export interface Child extends Part {
  /** Resolves with the reason if the process ends before `ready` is called. */
  diedEarly: Promise<string>
  ready(): void
  /** Undefined if it could not be started. */
  pid(): number | undefined
  /** Ends it by SIGKILL, which ends also a process that hangs; it is then restarted. */
  kill(): void
}

export interface ChildOptions {
  name: string
  command: string
  args: string[]
  env: NodeJS.ProcessEnv
  cwd: string
  logFile: string
  /** How long it may take to end after SIGTERM before it is killed. */
  stopMilliseconds: number
  spawned(pid: number): void
  say(line: string): void
}

/** Runs a process. Once it has been ready, restarts it with backoff whenever it ends. */
export function startChild(options: ChildOptions): Child {
  const { name, logFile, say } = options
  rotate(logFile)
  let stopping = false
  let wasReady = false
  let failures = 0
  let died: (reason: string) => void
  const diedEarly = new Promise<string>((resolve) => {
    died = resolve
  })
  let process = run()
  return {
    name,
    diedEarly,
    ready() {
      wasReady = true
    },
    pid: () => process.pid,
    kill() {
      process.kill('SIGKILL')
    },
    async stop() {
      stopping = true
      await stopProcess(process, options.stopMilliseconds)
    },
  }

  function run(): ChildProcess {
    const log = openSync(logFile, 'a')
    // A separate process group: Ctrl-C in the terminal reaches only us, and we stop the parts in order.
    const child = spawn(options.command, options.args, {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    const started = Date.now()
    let ended = false
    const onEnd = (reason: string) => {
      if (ended) return
      ended = true
      if (!stopping) void restart(reason, Date.now() - started)
    }
    child.on('error', (error) => onEnd(error.message))
    child.on('exit', (code, signal) => onEnd(signal ?? `exit code ${code}`))
    if (child.pid) options.spawned(child.pid)
    return child
  }

  async function restart(reason: string, uptime: number): Promise<void> {
    if (!wasReady) return died(`${name} ended (${reason}): ${lastLine(logFile)}`)
    failures = uptime > STABLE_MILLISECONDS ? 0 : failures + 1
    const delay = failures === 0 ? 0 : Math.min(MAX_DELAY, 250 * 2 ** failures)
    const when = delay === 0 ? '' : ` in ${delay / 1000} s`
    say(`${name} ended (${reason}); restarting${when}; log: ${logFile}`)
    await sleep(delay)
    if (!stopping) process = run()
  }
}

async function stopProcess(process: ChildProcess, milliseconds: number): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null || !process.pid) return
  const exited = new Promise((resolve) => process.once('exit', resolve))
  process.kill('SIGTERM')
  const timer = setTimeout(() => process.kill('SIGKILL'), milliseconds)
  await exited
  clearTimeout(timer)
}

function rotate(file: string): void {
  if (existsSync(file) && statSync(file).size > MAX_LOG_BYTES) renameSync(file, `${file}.1`)
}

/** The likely reason of the end: the last log line with an error, or else the last line; `msg` if it is JSON. */
function lastLine(file: string): string {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(-20)
  const line = lines.findLast((candidate) => /error|cannot|refused/i.test(candidate)) ?? lines.at(-1)
  try {
    return (JSON.parse(line!) as { msg?: string }).msg ?? line!
  } catch {
    return line || `see ${file}`
  }
}
