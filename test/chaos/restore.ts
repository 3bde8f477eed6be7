import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { answerRunById, cancelRunById } from '../load/operations.ts'
import { temporaryFolder } from '../support/folder.ts'
import { installedPostgres, loginsOf, startInstalledPostgres } from '../support/installed-postgres.ts'
import { runBackup } from '../support/run-backup.ts'
import { expectInTemporal, openRuns, startSleepers } from './adopt.ts'
import type { Fault, Situation } from './situation.ts'
import type { OwnPostgres, System } from './system.ts'

/** A store is restored to so long ago. */
const LOST_MS = 10_000

export const postgresRestored: Fault = {
  name: 'postgres-restored',
  title: 'PostgreSQL is restored to ten seconds before, while Temporal goes on',
  kind: 'loss',
  async strike(on) {
    const restoredTo = await on.system.copyPostgres()
    await pause(LOST_MS)
    await on.system.restorePostgres()
    await sendAgain(on, restoredTo)
    return { restoredTo }
  },
}

/** The procedure of docs/operations.md under "Backup of a deployment", by `npm run backup`. */
export const dumpRestored: Fault = {
  name: 'restore',
  title:
    'all is killed; a dump of ten seconds before is restored into a new database, with an empty Temporal',
  kind: 'loss',
  missing: () =>
    installedPostgres() ? undefined : 'no PostgreSQL is installed, with pg_dump and pg_restore',
  system: { postgres: ownPostgres },
  async strike(on) {
    const { system } = on
    const sleepers = await startSleepers(on)
    const dump = join(temporaryFolder(), 'agx.dump')
    const restoredTo = Date.now()
    await backUp(system, 'create', dump)
    await pause(LOST_MS)
    let open: string[] = []
    await system.restart(
      async () => {
        system.deleteTemporalDatabase()
        await replaceDatabase(system.databaseUrl)
        await backUp(system, 'restore', dump)
        open = await openRuns(system)
      },
      { TEMPORAL_ADOPT: 'true' },
    )
    expectInTemporal(on, open, sleepers)
    await sendAgain(on, restoredTo)
    return { restoredTo }
  },
}

async function ownPostgres(): Promise<OwnPostgres> {
  const { url, stop } = await startInstalledPostgres(installedPostgres()!)
  return { url, env: { ...loginsOf(url), DATABASE_OWNER_URL: url }, stop }
}

async function backUp(system: System, name: 'create' | 'restore', dump: string): Promise<void> {
  const { code, printed } = await runBackup(installedPostgres()!, system.env, name, dump)
  if (code !== 0) throw new Error(`npm run backup -- ${name}: ${printed}`)
}

async function replaceDatabase(url: string): Promise<void> {
  const server = new URL(url)
  const name = server.pathname.slice(1)
  server.pathname = '/postgres'
  const client = new pg.Client({ connectionString: server.href })
  await client.connect()
  try {
    await client.query(`drop database ${name} with (force)`)
    await client.query(`create database ${name}`)
  } finally {
    await client.end()
  }
}

/** Cancellations and answers that the database has lost are sent again; their run may be lost, too. */
async function sendAgain({ load }: Situation, restoredTo: number): Promise<void> {
  const { cancelled, answered } = load.ledger
  for (const { id, at } of cancelled) if (at >= restoredTo) await cancelRunById(load, id).catch(() => {})
  for (const { id, at } of [...answered])
    if (at >= restoredTo) load.begun.push(answerRunById(load, id).catch(() => {}))
}
