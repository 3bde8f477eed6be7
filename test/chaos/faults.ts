import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import {
  cancelRunById,
  createContacts,
  pauseRunById,
  resumeRunById,
  signalRun,
  startRun,
  startWaitingRun,
} from '../load/operations.ts'
import { until } from '../support/until.ts'
import { temporalEmptied } from './adopt.ts'
import { backlogStarted } from './backlog.ts'
import { rollingRestart } from './deploy.ts'
import { manyCallsResumed } from './many-calls.ts'
import { postgresAwayForDays } from './outage-of-days.ts'
import { pooled } from './pooled.ts'
import { dumpRestored, postgresRestored } from './restore.ts'
import type { Fault, Situation } from './situation.ts'
import { stagingCopy } from './staging-copy.ts'

const OUTAGE_MS = 30_000
/** The supervisor restarts a process at once if it ran for five seconds. */
const BETWEEN_KILLS_MS = 6_000
/** A kill within a phase of runs waits until this number of runs is in it. */
const SEVERAL = 3
const WAIT_SECONDS = 90
const BURST = 2_000

export const FAULTS: Fault[] = [
  kill('worker-before-claim', 'the worker is killed; runs are queued before it is back', ({ system, load }) =>
    system.down(['worker'], async () => {
      for (let n = 0; n < 10; n++) await startRun(load)
    }),
  ),
  kill('worker-in-segment', 'the worker is killed within the transactions of segments', async (on) => {
    await whileLocked(on, 'lock table run_segments in access exclusive mode', async (blocked) => {
      await blocked()
      on.system.kill('worker')
    })
  }),
  kill('worker-in-call', 'the worker is killed while external nodes wait for answers', async (on) => {
    await whileCallsWait(on, async () => on.system.kill('worker'))
  }),
  kill('worker-in-recording', 'the worker is killed before it records answers that it has', async (on) => {
    await whileCallsWait(on, () =>
      whileLocked(on, 'lock table run_nodes in share mode', async (blocked) => {
        on.outside.release()
        await blocked()
        on.system.kill('worker')
      }),
    )
  }),
  kill('worker-before-report', 'the worker is killed before it reports to Temporal what it committed', (on) =>
    on.system.frozen('temporal', async () => {
      await pause(1_500)
      on.system.kill('worker')
    }),
  ),
  kill('worker-repeatedly', 'the worker is killed five times, every six seconds', ({ system }) =>
    repeatedly(5, () => system.kill('worker')),
  ),
  kill('one-worker-of-two', 'one of two workers is killed', ({ system }) => system.kill('worker'), true),
  kill('both-workers', 'two workers are killed at once', both('worker'), true),
  kill('api', 'the api is killed three times, right after it has accepted a run', ({ system, load }) =>
    repeatedly(3, async () => {
      await startRun(load)
      system.kill('api')
    }),
  ),
  kill('one-api-of-two', 'one of two apis is killed', ({ system }) => system.kill('api'), true),
  kill('temporal', 'Temporal is killed', ({ system }) => system.kill('temporal')),
  kill('postgres', 'PostgreSQL is killed', ({ system }) => system.kill('postgres')),
  kill('everything', 'all processes are killed at once', ({ system }) => system.restart()),
  outage(
    'burst',
    `the worker, the api and Temporal are killed in turn, while ${BURST.toLocaleString('en')} events are delivered`,
    async ({ system, load, outside }) => {
      const arrived = outside.deliveries.size
      const created = createContacts(load, BURST)
      for (const [n, victim] of (['worker', 'api', 'temporal'] as const).entries()) {
        const part = arrived + ((n + 1) * BURST) / 5
        await until(() => outside.deliveries.size > part, 'deliveries of the burst', WAIT_SECONDS)
        system.kill(victim)
      }
      await created
    },
  ),
  ...(['worker', 'api', 'temporal', 'postgres'] as const).map((victim) =>
    outage(`${victim}-down`, `the ${victim} is killed and stays down for 30 s`, ({ system }) =>
      system.down([victim], () => pause(OUTAGE_MS)),
    ),
  ),
  ...(['worker', 'api', 'temporal', 'postgres'] as const).map((victim) =>
    outage(
      `${victim}-frozen`,
      `the ${victim} is stopped by SIGSTOP for 30 s${victim === 'temporal' ? ', or until it is replaced' : ''}`,
      ({ system }) => system.frozen(victim, () => pause(OUTAGE_MS)),
    ),
  ),
  backlogStarted,
  outage('logs-full', 'the disk of the logs is full; api and worker are restarted', async ({ system }) => {
    for (const name of ['api', 'worker'] as const) {
      const file = join(system.stack.dataDir, 'logs', `${name}.log`)
      rmSync(file)
      symlinkSync('/dev/full', file)
      system.kill(name)
    }
  }),
  manyCallsResumed,
  postgresAwayForDays,
  temporalEmptied,
  {
    name: 'everything-temporal-deleted',
    title: 'all processes are killed, and the database of Temporal is deleted',
    kind: 'loss',
    async strike({ system }) {
      await system.restart(() => system.deleteTemporalDatabase())
      return {}
    },
  },
  {
    name: 'temporal-restored',
    title: 'Temporal is restored to ten seconds before, while runs were signalled, cancelled and paused',
    kind: 'loss',
    async strike({ system, load }) {
      const ids = await Promise.all(Array.from({ length: 8 }, () => startWaitingRun(load)))
      await pause(2_000)
      await system.copyTemporal()
      const [cancelled, paused, resumed, ...others] = ids as [string, string, string, ...string[]]
      for (const id of others) await signalRun(load, id, 'first')
      await cancelRunById(load, cancelled)
      load.ledger.cancelled.push({ id: cancelled, at: Date.now() })
      for (const id of [paused, resumed]) await pauseRunById(load, id)
      await pause(1_000)
      await resumeRunById(load, resumed)
      await pause(9_000)
      await system.restoreTemporal()
      await resumeRunById(load, paused)
      for (const id of [paused, resumed]) await signalRun(load, id, 'first')
      for (const id of [paused, resumed, ...others]) {
        await signalRun(load, id, 'second')
        load.ledger.signalled.push({ id, at: Date.now() })
      }
      return {}
    },
  },
  stagingCopy,
  postgresRestored,
  dumpRestored,
  rollingRestart,
  pooled,
]

type Strike = (on: Situation) => unknown

function kill(name: string, title: string, strike: Strike, second?: true): Fault {
  return { ...simple(name, title, strike), kind: 'kill', ...(second && { second }) }
}

function outage(name: string, title: string, strike: Strike): Fault {
  return { ...simple(name, title, strike), kind: 'outage' }
}

function simple(name: string, title: string, strike: Strike): Omit<Fault, 'kind'> {
  return {
    name,
    title,
    async strike(on) {
      await strike(on)
      return {}
    },
  }
}

function both(victim: 'worker' | 'api'): Strike {
  return ({ system }) => {
    system.kill(victim)
    system.second!.kill(victim)
  }
}

async function repeatedly(times: number, strike: () => unknown): Promise<void> {
  for (let n = 0; n < times; n++) {
    if (n > 0) await pause(BETWEEN_KILLS_MS)
    await strike()
  }
}

/** Holds the responses of calls, and runs `work` while several calls of runs wait. */
async function whileCallsWait({ outside }: Situation, work: () => Promise<void>): Promise<void> {
  outside.hold()
  try {
    const several = () => (outside.held() >= SEVERAL ? true : undefined)
    await until(several, 'calls that wait for an answer', WAIT_SECONDS)
    await work()
  } finally {
    outside.release()
  }
}

const BLOCKED = `from pg_stat_activity where application_name like 'agx worker%' and wait_event_type = 'Lock'`

/** Holds a lock while `work` runs. `blocked` waits until several transactions of the worker wait for it. */
async function whileLocked(
  { system }: Situation,
  lock: string,
  work: (blocked: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  const [holder, observer] = [0, 1].map(() => new pg.Client({ connectionString: system.databaseUrl }))
  await Promise.all([holder!.connect(), observer!.connect()])
  try {
    await holder!.query('begin')
    await holder!.query(lock)
    await work(() =>
      until(
        async () => {
          const { rowCount } = await observer!.query(`select ${BLOCKED}`)
          return rowCount! >= SEVERAL ? true : undefined
        },
        'transactions that wait for the lock',
        WAIT_SECONDS,
      ),
    )
    // PostgreSQL would still execute the dead worker's statements, including COMMIT, as soon as the lock is free.
    await observer!.query(`select pg_terminate_backend(pid) ${BLOCKED}`)
  } finally {
    await Promise.all([holder!.end(), observer!.end()])
  }
}
