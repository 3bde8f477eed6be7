import { setTimeout as pause } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import pg from 'pg'
import { signalRun, startWaitingRun, statusOf } from '../load/operations.ts'
import { until } from '../support/until.ts'
import type { Fault, Situation } from './situation.ts'
import type { System } from './system.ts'

const SLEEPERS = 20
/** Each open run has a workflow again within this time of an adoption. */
const FOUND_MS = 60_000
const EVERY_MS = 500
/** A call to a Temporal that does not answer is repeated. */
const CALL_MS = 2_000
const EXAMPLES = 5

/** The database adopts an empty Temporal by itself, as `npm start` has it: both are of one data folder. */
export const temporalEmptied: Fault = {
  name: 'adopt',
  title: 'Temporal is killed, and its database is deleted: all open runs are in the new one within a minute',
  kind: 'loss',
  async strike(on) {
    const { system } = on
    const sleepers = await startSleepers(on)
    let open: string[] = []
    await system.down(['temporal'], async () => {
      await pause(500)
      system.deleteTemporalDatabase()
      open = await openRuns(system)
    })
    expectInTemporal(on, open, sleepers)
    return {}
  },
}

/**
 * Starts runs that wait for signals. They are made such that the sweep has compared them with Temporal: it would not
 * look them up again for hours.
 */
export async function startSleepers({ system, load }: Situation): Promise<string[]> {
  const ids = await Promise.all(Array.from({ length: SLEEPERS }, () => startWaitingRun(load)))
  const asleep = `select from runs where id = any($1) and status = 'running' and sleeps_until is not null`
  await withDatabase(system, async (client) => {
    await until(async () => (await client.query(asleep, [ids])).rowCount === ids.length, 'runs that sleep')
    await client.query('update runs set checked = true where id = any($1)', [ids])
  })
  return ids
}

/** The runs that have not ended. */
export const openRuns = (system: System): Promise<string[]> =>
  withDatabase(system, async (client) => {
    const { rows } = await client.query<{ id: string }>(
      `select id from runs where kind = 'run' and status in ('queued', 'running')`,
    )
    return rows.map(({ id }) => id)
  })

/**
 * Has `endure` fail unless Temporal has a workflow of each of the runs that were open, or the run has ended, within a
 * minute from now. Then the sleepers get their signals, and must complete.
 */
export function expectInTemporal(on: Situation, open: string[], sleepers: string[]): void {
  const done = allInTemporal(on, open).then(async () => {
    const { load } = on
    for (const id of sleepers) {
      for (const name of ['first', 'second']) await signalRun(load, id, name)
      load.ledger.signalled.push({ id, at: Date.now() })
    }
  })
  // It is awaited with the operations of the load, which may be later than it fails.
  done.catch(() => {})
  on.load.begun.push(done)
}

async function allInTemporal({ system, load, say }: Situation, open: string[]): Promise<void> {
  const since = Date.now()
  const connection = Connection.lazy({ address: system.stack.temporalAddress })
  const client = new Client({ connection })
  try {
    const missing = new Set(open)
    for (; missing.size > 0; await pause(EVERY_MS)) {
      for (const id of [...missing])
        if ((await isInTemporal(client, id)) || !isOpen(await statusOf(load, id))) missing.delete(id)
      if (missing.size > 0 && Date.now() > since + FOUND_MS)
        throw new Error(
          `${missing.size} of ${open.length} open runs are not in Temporal after ${FOUND_MS / 1_000} s: ${[...missing].slice(0, EXAMPLES)}`,
        )
    }
    say(
      `  each of ${open.length} open runs is in Temporal after ${((Date.now() - since) / 1_000).toFixed(1)} s`,
    )
  } finally {
    await connection.close()
  }
}

const isOpen = (status: string) => status === 'queued' || status === 'running'

const isInTemporal = ({ connection, workflow }: Client, id: string): Promise<boolean> =>
  connection
    .withDeadline(Date.now() + CALL_MS, () => workflow.getHandle(`run:${id}`).describe())
    .then(
      ({ status }) => status.name === 'RUNNING',
      () => false,
    )

async function withDatabase<T>({ databaseUrl }: System, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
