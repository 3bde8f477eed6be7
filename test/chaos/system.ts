import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { findTemporalCli } from '../../worker/dev/temporal-cli.ts'
import type { OtherPace } from '../support/bundle.ts'
import { temporaryFolder } from '../support/folder.ts'
import { quietPort } from '../support/quiet-port.ts'
import {
  LOCAL_ONLY,
  type ProcessName,
  type StackOptions,
  startStack,
  type TestStack,
} from '../support/stack.ts'

/** The parts that a fault can affect. */
export type Victim = Exclude<ProcessName, 'supervisor'>

export const VICTIMS: Victim[] = ['worker', 'api', 'temporal', 'postgres']

const ENV = {
  ...LOCAL_ONLY,
  ALLOW_INSECURE_WEBHOOKS: 'true',
  LOG_LEVEL: 'warn',
  SECRETS_KEY: randomBytes(32).toString('base64'),
}

/** What makes time pass faster than in production. */
export interface SystemOptions {
  pace?: OtherPace
  /** Dynamic configuration of Temporal. */
  temporalLimits?: Record<string, number>
}

/** A running stack whose parts can be killed, kept down and frozen. Linux only. */
export class System {
  stack: TestStack
  /** A second api and worker on the same database and Temporal. */
  second: TestStack | undefined

  private readonly options: StackOptions

  private constructor(stack: TestStack, options: StackOptions) {
    this.stack = stack
    this.options = options
  }

  static async start({ pace, temporalLimits }: SystemOptions = {}): Promise<System> {
    const cli = temporalLimits && { TEMPORAL_CLI_PATH: await cliWith(temporalLimits) }
    const options = { env: { ...ENV, ...cli }, ...(pace && { pace }) }
    return new System(await startStack(options), options)
  }

  async startSecond(): Promise<void> {
    this.second ??= await startStack({ ...this.options, beside: this.stack })
  }

  async stop(): Promise<void> {
    await this.second?.stop()
    await this.stack.stop()
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

  /** Kills all processes, the supervisor first, and starts the stack again. */
  async restart(meanwhile: () => void = () => {}): Promise<void> {
    this.stack.kill('supervisor')
    for (const victim of VICTIMS) this.kill(victim)
    await this.stack.exited
    // The processes of PostgreSQL end after their parent.
    await pause(200)
    meanwhile()
    this.stack = await startStack({ ...this.options, previous: this.stack })
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

  /**
   * Copies the database into another one of the same server, whose other connections are ended, and starts a worker on
   * the copy, with the same Temporal. @returns its output, once it has exited by itself. Throws if it works.
   */
  async workerOnCopy(): Promise<string> {
    const { databaseUrl, temporalAddress, dataDir } = this.stack
    const copy = new URL(databaseUrl)
    copy.pathname = '/staging'
    await copyDatabase(databaseUrl, 'staging')
    const child = spawn(process.execPath, ['worker/run.mjs', 'worker/main.ts'], {
      cwd: fileURLToPath(new URL('../../', import.meta.url)),
      env: {
        ...process.env,
        ...ENV,
        DATABASE_URL: copy.href,
        ALLOW_SINGLE_DATABASE_LOGIN: 'true',
        TEMPORAL_ADDRESS: temporalAddress,
        DATA_DIR: dataDir,
        WORKER_PORT: String(await quietPort()),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: COPY_MS,
      killSignal: 'SIGKILL',
    })
    let output = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    const [code] = await once(child, 'close')
    if (code !== 1) throw new Error(`the worker on a copy of the database did not exit by itself: ${output}`)
    return output
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

/** The time within which a worker that is refused exits. */
const COPY_MS = 30_000

async function copyDatabase(url: string, name: string): Promise<void> {
  const original = new URL(url).pathname.slice(1)
  const server = new URL(url)
  server.pathname = '/postgres'
  const client = new pg.Client({ connectionString: server.href })
  await client.connect()
  try {
    await client.query(`drop database if exists ${name} with (force)`)
    // PostgreSQL copies no database that has connections.
    await client.query(`alter database ${original} allow_connections false`)
    await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
      original,
    ])
    await client.query(`create database ${name} template ${original}`)
  } finally {
    await client.query(`alter database ${original} allow_connections true`)
    await client.end()
  }
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
