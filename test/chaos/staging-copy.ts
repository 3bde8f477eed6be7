import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Fault } from './situation.ts'
import type { System } from './system.ts'

/** The time within which a worker that is refused exits. */
const COPY_MS = 30_000

export const stagingCopy: Fault = {
  name: 'staging-copy',
  title: 'a worker is started on a copy of the database, with the same Temporal, while the worker is down',
  kind: 'loss',
  async strike({ system }) {
    await system.down(['worker'], async () => {
      const output = await workerOnCopy(system)
      if (!/belongs to another database/.test(output))
        throw new Error(`the worker on a copy of the database was refused for another reason: ${output}`)
      await pause(5_000)
    })
    return {}
  },
}

/**
 * Copies the database into another one of the same server, whose other connections are ended, and starts a worker on
 * the copy, with the same Temporal. @returns its output, once it has exited by itself. Throws if it works.
 */
async function workerOnCopy(system: System): Promise<string> {
  await copyDatabase(system.databaseUrl, 'staging')
  const { code, output } = await system.workerOn('staging', COPY_MS)
  if (code !== 1) throw new Error(`the worker on a copy of the database did not exit by itself: ${output}`)
  return output
}

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
