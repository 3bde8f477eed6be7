import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findTemporalCli } from '../../worker/dev/temporal-cli.ts'
import type { OtherPace } from '../support/bundle.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { quietPort } from '../support/quiet-port.ts'
import { LOCAL_ONLY, type ProcessName, startStack, type TestStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** The parts that a fault can affect. */
export type Victim = Exclude<ProcessName, 'supervisor'>

export const VICTIMS: Victim[] = ['worker', 'api', 'temporal', 'postgres']

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const ENV = {
  ...LOCAL_ONLY,
  ALLOW_INSECURE_WEBHOOKS: 'true',
  LOG_LEVEL: 'warn',
  SECRETS_KEY: randomBytes(32).toString('base64'),
}

/** How a system differs from what `npm start` starts. */
export interface SystemOptions {
  /** Makes time pass faster than in production. */
  pace?: OtherPace
  /** Dynamic configuration of Temporal. */
  temporalLimits?: Record<string, number>
  /** Further variables of its processes. */
  env?: Record<string, string>
  /** Starts the PostgreSQL that it uses instead of the embedded one; no fault kills it. */
  postgres?(): Promise<OwnPostgres>
  /** Whether the second api and worker reach PostgreSQL through PgBouncer. */
  pgBouncer?: true
}

/** A PostgreSQL beside the stack. */
export interface OwnPostgres {
  /** The URL of the database's owner. */
  url: string
  /** The variables by which the processes find it. */
  env: Record<string, string>
  stop(): Promise<void>
}

/** A running stack whose parts can be killed, kept down and frozen. Linux only. */
export class System {
  stack: TestStack
  /** A second api and worker on the same database and Temporal. */
  second: TestStack | undefined
  /** Between PostgreSQL and the second api and worker, if the options ask for it. */
  pgBouncer: PgBouncer | undefined

  /** The variables of its processes. */
  readonly env: Record<string, string>

  private readonly options: SystemOptions
  private readonly postgres: OwnPostgres | undefined

  private constructor(
    stack: TestStack,
    options: SystemOptions,
    postgres: OwnPostgres | undefined,
    env: Record<string, string>,
  ) {
    this.stack = stack
    this.options = options
    this.postgres = postgres
    this.env = env
  }

  static async start(options: SystemOptions = {}): Promise<System> {
    const { pace, temporalLimits } = options
    const cli = temporalLimits && { TEMPORAL_CLI_PATH: await cliWith(temporalLimits) }
    const postgres = await options.postgres?.()
    const env = { ...ENV, ...cli, ...postgres?.env, ...options.env }
    const stack = await startStack({ env, ...(pace && { pace }) })
    return new System(stack, options, postgres, env)
  }

  async startSecond(): Promise<void> {
    if (this.second) return
    const { pace, pgBouncer } = this.options
    if (pgBouncer) this.pgBouncer = await startPgBouncer(this.databaseUrl, 'session')
    const env = { ...this.env, ...(this.pgBouncer && { DATABASE_URL: this.pgBouncer.url }) }
    this.second = await startStack({ env, ...(pace && { pace }), beside: this.stack })
  }

  async stop(): Promise<void> {
    await this.second?.stop()
    await this.pgBouncer?.stop()
    await this.stack.stop()
    await this.postgres?.stop()
  }

  /** The URL of the database's owner, who sees all rows. */
  get databaseUrl(): string {
    return this.postgres?.url ?? this.stack.databaseUrl
  }

  /** Kills a part with SIGKILL. The supervisor restarts it. */
  kill(victim: Victim): void {
    for (const pid of this.tree(victim)) signal(pid, 'SIGKILL')
  }

  /** Kills parts and keeps them down: their supervisor is frozen. `meanwhile` runs before they are restarted. */
  async down(victims: Victim[], meanwhile: () => Promise<void>): Promise<void> {
    this.stack.kill('supervisor', 'SIGSTOP')
    try {
      for (const victim of victims) this.kill(victim)
      await meanwhile()
    } finally {
      this.stack.kill('supervisor', 'SIGCONT')
    }
  }

  /** Stops a part with SIGSTOP. The processes of PostgreSQL are all stopped. */
  async frozen(victim: Victim, meanwhile: () => Promise<void>): Promise<void> {
    // A stopped process starts no other, so the second round finds all.
    const pids = new Set<number>()
    for (let round = 0; round < 2; round++)
      for (const pid of this.tree(victim)) {
        signal(pid, 'SIGSTOP')
        pids.add(pid)
      }
    try {
      await meanwhile()
    } finally {
      for (const pid of pids) signal(pid, 'SIGCONT')
    }
  }

  /**
   * Stops a process as a deploy does, by SIGTERM, and waits until the one that the supervisor starts in its place is
   * ready.
   */
  async replace(stack: TestStack, name: 'api' | 'worker'): Promise<void> {
    const old = stack.pid(name)
    stack.kill(name, 'SIGTERM')
    const url = name === 'api' ? stack.apiUrl : stack.workerUrl
    const isReady = async () => stack.pid(name) !== old && (await fetch(`${url}/readyz`)).status === 200
    await until(isReady, `the next ${name}`)
  }

  /** Kills all processes, the supervisor first, and starts the stack again, with `more` variables. */
  async restart(
    meanwhile: () => void | Promise<void> = () => {},
    more: Record<string, string> = {},
  ): Promise<void> {
    this.stack.kill('supervisor')
    for (const victim of VICTIMS) if (victim !== 'postgres' || !this.postgres) this.kill(victim)
    await this.stack.exited
    // The processes of PostgreSQL end after their parent.
    await pause(200)
    await meanwhile()
    const { pace } = this.options
    const env = { ...this.env, ...more }
    this.stack = await startStack({ env, ...(pace && { pace }), previous: this.stack })
  }

  /**
   * Starts a worker on another database of the same PostgreSQL, with the same Temporal. @returns its exit code, and what
   * it printed; a code of null if it had to be killed.
   */
  async workerOn(database: string, milliseconds: number): Promise<{ code: number | null; output: string }> {
    const { databaseUrl, temporalAddress, dataDir } = this.stack
    const url = new URL(databaseUrl)
    url.pathname = `/${database}`
    const child = spawn(process.execPath, ['worker/run.mjs', 'worker/main.ts'], {
      cwd: ROOT,
      env: {
        ...process.env,
        ...this.env,
        DATABASE_URL: url.href,
        ALLOW_SINGLE_DATABASE_LOGIN: 'true',
        TEMPORAL_ADDRESS: temporalAddress,
        DATA_DIR: dataDir,
        WORKER_PORT: String(await quietPort()),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: milliseconds,
      killSignal: 'SIGKILL',
    })
    let output = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    const [code] = await once(child, 'close')
    return { code, output }
  }

  deleteTemporalDatabase(): void {
    const { dataDir } = this.stack
    rmSync(join(dataDir, 'temporal.db'))
    for (const suffix of ['-wal', '-shm']) rmSync(join(dataDir, `temporal.db${suffix}`), { force: true })
  }

  /**
   * Copies the data folder of PostgreSQL at one moment, as a file-system snapshot does.
   * @returns the time of the copy in milliseconds since the epoch: it contains everything committed before.
   */
  async copyPostgres(): Promise<number> {
    const at = Date.now()
    const { folder, copy } = this.postgresFolders()
    await this.frozen('postgres', async () => void execFileSync('cp', ['-a', folder, copy]))
    return at
  }

  /** Replaces the data folder of PostgreSQL by its copy, while Temporal goes on. */
  async restorePostgres(): Promise<void> {
    const { folder, copy } = this.postgresFolders()
    await this.down(['postgres'], async () => {
      await pause(500)
      rmSync(folder, { recursive: true })
      renameSync(copy, folder)
      rmSync(join(folder, 'postmaster.pid'))
    })
  }

  /** Copies Temporal's database at one moment, as a file-system snapshot does. */
  async copyTemporal(): Promise<void> {
    await this.frozen('temporal', async () => {
      for (const file of this.temporalFiles()) cpSync(file, `${file}.copy`)
    })
  }

  /** Replaces Temporal's database by its copy, while PostgreSQL and the workers go on. */
  async restoreTemporal(): Promise<void> {
    await this.down(['temporal'], async () => {
      await pause(500)
      for (const file of this.temporalFiles()) rmSync(file)
      for (const file of this.temporalFiles('.copy')) renameSync(file, file.replace('.copy', ''))
    })
  }

  private temporalFiles(suffix = ''): string[] {
    return ['', '-wal', '-shm']
      .map((part) => join(this.stack.dataDir, `temporal.db${part}${suffix}`))
      .filter((file) => existsSync(file))
  }

  private postgresFolders() {
    const { dataDir } = this.stack
    return { folder: join(dataDir, 'postgres'), copy: join(dataDir, 'postgres-copy') }
  }

  private tree(victim: Victim): number[] {
    const pid = this.stack.pid(victim)
    return [pid, ...childrenOf(pid)]
  }
}

/** @returns the path of a Temporal CLI whose server has further settings. */
async function cliWith(settings: Record<string, number>): Promise<string> {
  const { env } = process
  const cli = await findTemporalCli({ path: env.TEMPORAL_CLI_PATH, env, progress: () => {} })
  const options = Object.entries(settings).map(([key, value]) => `--dynamic-config-value ${key}=${value}`)
  const path = join(temporaryFolder(), 'temporal')
  writeFileSync(path, `#!/bin/sh\nexec '${cli}' "$@" ${options.join(' ')}\n`, { mode: 0o755 })
  return path
}

/** A process may have ended in the meantime. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function childrenOf(pid: number): number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    const children = threads.flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    )
    return children.flatMap((child) => [child, ...childrenOf(child)])
  } catch {
    return []
  }
}
