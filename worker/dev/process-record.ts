import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../db/model/config-error.ts'
import { processIdentity, waitForExit } from './postgres/process.ts'

interface Entry {
  name: string
  pid: number
  /** Detects that another process has reused the pid. */
  identity: string
}

/** The processes of one data folder, stored in a file so that a start after kill -9 finds orphaned processes. */
export class ProcessRecord {
  private readonly file: string
  private entries: Entry[]

  constructor(dataDir: string) {
    this.file = join(dataDir, 'processes.json')
    this.entries = existsSync(this.file) ? (JSON.parse(readFileSync(this.file, 'utf8')) as Entry[]) : []
  }

  /** Ends the orphans of a killed supervisor; returns their names. Throws ConfigError if a supervisor still runs. */
  async takeOver(): Promise<string[]> {
    const running = this.entries.filter(({ pid, identity }) => processIdentity(pid) === identity)
    const supervisor = running.find(({ name }) => name === 'supervisor')
    if (supervisor)
      throw new ConfigError(
        `DATA_DIR is in use by another agx (process ${supervisor.pid}): stop it, or set DATA_DIR to another folder`,
      )
    await Promise.all(running.map(end))
    this.entries = []
    this.add('supervisor', process.pid)
    return running.map(({ name }) => name)
  }

  add(name: string, pid: number): void {
    const identity = processIdentity(pid)
    if (identity === undefined) return
    this.entries = [...this.entries.filter((entry) => entry.name !== name), { name, pid, identity }]
    writeFileSync(this.file, `${JSON.stringify(this.entries, null, 2)}\n`)
  }

  clear(): void {
    rmSync(this.file, { force: true })
  }
}

async function end({ pid, identity }: Entry): Promise<void> {
  process.kill(pid, 'SIGTERM')
  if (await waitForExit(pid, identity, 3_000)) return
  process.kill(pid, 'SIGKILL')
  await waitForExit(pid, identity, 3_000)
}
