import { setTimeout as pause } from 'node:timers/promises'
import { connect, type Database } from '../../db/postgres/connect.ts'
import type { TestStack } from '../support/stack.ts'
import { load, summary } from './load.ts'
import { print } from './report.ts'
import { type Bench, prepareRuns } from './runs.ts'

/** Seconds of warm-up, until the JIT has compiled the measured code. */
const WARM_UP = 15
const COUNT = 50
/** Pause between two delays, so that each is measured alone. */
const PAUSE_MS = 200
const SCHEDULES = 5
/** A schedule fires at most once a minute. */
const TIMES = 2

const BODY = 'set: {type: set_fields, config: {fields: {n: 1}}}'
const SCHEDULED = (n: number) => `name: Every minute ${n}
trigger: {type: schedule, cron: "* * * * *"}
nodes:
  ${BODY}
`
const LISTENING = `name: Listening
trigger: {type: event, events: [contact.created]}
nodes:
  ${BODY}
`
const PLAIN = `name: Plain
nodes:
  ${BODY}
`
const ASKING = `name: Asking
nodes:
  ask: {type: approval, config: {title: Go on?}, next: {approved: set, rejected: end}}
  ${BODY}
`

interface Save extends Bench {
  save(spec: string): Promise<string>
}

/**
 * The delays of starts and continuations of runs, each alone: from an event to the first segment of the run that it
 * starts, from the time of a schedule to that of its run, from the request that answers an approval to the next node.
 * The floor of the first, in turns with it: from the row of a run that a client started to its first segment.
 */
export async function benchTriggers(stack: TestStack): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  const made = await prepareRuns(stack)
  const bench: Save = {
    ...made,
    async save(spec) {
      const { workflow_id } = await made.post<{ workflow_id: string }>('/v1/workflows', { spec })
      if (spec.includes('trigger:')) await made.post(`/v1/workflows/${workflow_id}/activate`, {})
      return workflow_id
    },
  }
  await bench.save(PLAIN.replace('Plain', 'Warm-up'))
  await load(stack.apiUrl, 4, WARM_UP, () => bench.shot('Warm-up'))
  await events(db, bench)
  const schedules: string[] = []
  for (let n = 0; n < SCHEDULES; n++) schedules.push(await bench.save(SCHEDULED(n)))
  const { triggered, called } = await events(db, bench)
  report('event to start', triggered, 'p50', 100)
  report('  floor: call to start', called)
  report('approval to next node', await approvals(db, bench), 'p50', 150)
  report('schedule to start', await scheduled(db, schedules), 'most', 1_000)
  await db.close()
}

async function events(db: Database, bench: Save) {
  const listening = await bench.save(LISTENING)
  const plain = await bench.save(PLAIN)
  for (let n = 0; n < COUNT; n++) {
    await bench.post('/v1/objects/contacts', { first_name: `Bench ${n}` })
    await pause(PAUSE_MS)
    await bench.post(`/v1/workflows/${plain}/run`, { confirm: true })
    await pause(PAUSE_MS)
  }
  const times = {
    triggered: await delays(db, `cast(trigger #>> '{event,created_at}' as timestamptz)`, [listening], COUNT),
    called: await delays(db, 'created_at', [plain], COUNT),
  }
  await bench.post(`/v1/workflows/${listening}/deactivate`, {})
  return times
}

/** Waits until the given number of runs of the workflows has started. */
async function delays(db: Database, since: string, workflowIds: string[], count: number): Promise<number[]> {
  for (;;) {
    const { rows } = await db.system.raw<{ rows: { ms: number }[] }>(
      `select cast(extract(epoch from started_at - ${since}) * 1000 as double precision) as ms
       from runs where workflow_id = any(cast(? as uuid[])) and started_at is not null`,
      [workflowIds],
    )
    if (rows.length >= count) return rows.map(({ ms }) => ms)
    await pause(500)
  }
}

const scheduled = (db: Database, workflowIds: string[]) =>
  delays(db, `cast(trigger ->> 'scheduled_at' as timestamptz)`, workflowIds, TIMES * SCHEDULES)

async function approvals(db: Database, bench: Save): Promise<number[]> {
  const id = await bench.save(ASKING)
  const times: number[] = []
  for (let n = 0; n < COUNT; n++) {
    const { run_id } = await bench.post<{ run_id: string }>(`/v1/workflows/${id}/run`, { confirm: true })
    const wait = await found<{ id: string }>(() => db.system('run_waits').where({ run_id }).first('id'))
    await pause(PAUSE_MS)
    const sent = Date.now()
    await bench.post(`/v1/runs/${run_id}/signal`, { approval_id: wait.id, decision: 'approved' })
    const next = await found<{ started_at: Date }>(() =>
      db.system('run_nodes').where({ run_id, node_id: 'set' }).first('started_at'),
    )
    times.push(next.started_at.getTime() - sent)
  }
  return times
}

async function found<T>(look: () => PromiseLike<T | undefined>): Promise<T> {
  for (;;) {
    const row = await look()
    if (row) return row
    await pause(50)
  }
}

function report(name: string, times: number[], what?: 'p50' | 'most', wanted?: number): void {
  const { p50, p99 } = summary(times, 1)
  const most = Math.max(...times)
  const figures = `p50 ${p50.toFixed(0)} ms  p99 ${p99.toFixed(0)} ms  most ${most.toFixed(0)} ms`
  const goal = what ? ` (${what}: at most ${wanted} ms is wanted)` : ''
  print(`${name.padEnd(24)} ${figures}  of ${times.length}${goal}`)
}
