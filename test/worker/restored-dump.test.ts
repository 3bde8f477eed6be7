import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, Connection } from '@temporalio/client'
import { copyRun } from '../support/copy-run.ts'
import { connected } from '../support/database.ts'
import { temporaryFolder } from '../support/folder.ts'
import { installedPostgres, loginsOf, startInstalledPostgres } from '../support/installed-postgres.ts'
import { type OwnTemporal, startOwnTemporal } from '../support/own-temporal.ts'
import { plantedKey } from '../support/planted.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { startReceiver } from '../support/receiver.ts'
import { runBackup } from '../support/run-backup.ts'
import { until } from '../support/until.ts'

/** A drill of its own: RESTORE_SLEEPERS=500 holds it to its promised times, and 100000 measures it at scale. */
const MEASURED = process.env.RESTORE_SLEEPERS
/** Runs that wait when the dump is made. */
const SLEEPERS = Number(MEASURED ?? 0)
/** Within which each run is looked up, and a caller's signal or cancellation has its effect. */
const SECONDS = 60
/** Within which each run has a workflow, which an operator finds: Temporal starts some hundred a second. */
const STARTED_SECONDS = Math.max(SECONDS, SLEEPERS / 50)

const WAITS = `name: Waits
nodes:
  hold: {type: wait_for_signal, config: {name: go}}
`
const SLEEPS = `name: Sleeps
nodes:
  pause: {type: delay, config: {for: 30d}}
`

/** `npm run backup`, with the programs of an installed PostgreSQL. */
describe('a dump that is restored into a new cluster, with an empty Temporal', function () {
  this.timeout(900_000)
  const programs = installedPostgres()
  const key = plantedKey()
  const secretsKey = randomBytes(32).toString('base64')
  const taskQueue = `test-${randomUUID()}`
  const dump = join(temporaryFolder(), 'agx.dump')
  const stops: (() => unknown)[] = []
  const processes: TestProcess[] = []
  let receiver: Awaited<ReturnType<typeof startReceiver>>
  before(function () {
    if (!programs || !MEASURED) this.skip()
  })
  after(async () => {
    for (const { child } of processes) child.kill('SIGKILL')
    for (const stop of stops.reverse()) await stop()
  })

  interface Deployment {
    /** The owner's URL. */
    owner: string
    env: Record<string, string>
    temporal: OwnTemporal
    worker: TestProcess
    api: TestProcess
  }

  /** A new cluster with the logins of `migrate`, and a new Temporal; `fill` comes before the processes. */
  async function deploy(
    more: Record<string, string>,
    fill = async (_owner: string) => {},
  ): Promise<Deployment> {
    const [postgres, temporal] = await Promise.all([startInstalledPostgres(programs!), startOwnTemporal()])
    stops.push(postgres.stop, temporal.stop)
    const { DATABASE_URL: databaseUrl, DATABASE_SYSTEM_URL } = loginsOf(postgres.url)
    const env = {
      DATABASE_SYSTEM_URL,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_TASK_QUEUE: taskQueue,
      SECRETS_KEY: secretsKey,
      ALLOW_INSECURE_WEBHOOKS: 'true',
      ...more,
    }
    const migrate = (bootstrap = {}) =>
      execFileSync(process.execPath, ['worker/run.mjs', 'worker/commands/migrate.ts'], {
        cwd: fileURLToPath(new URL('../../', import.meta.url)),
        encoding: 'utf8',
        env: {
          ...process.env,
          DATABASE_URL: databaseUrl,
          DATABASE_OWNER_URL: postgres.url,
          ...env,
          ...bootstrap,
        },
      })
    migrate(more.TEMPORAL_ADOPT ? {} : { BOOTSTRAP_EMAIL: 'ada@example.com', BOOTSTRAP_API_KEY: key })
    await fill(postgres.url)
    assert.match(migrate(), /nothing to apply/)
    const start = (name: 'api' | 'worker') => startProcess(name, { databaseUrl, env })
    const [worker, api] = await Promise.all([start('worker'), start('api')])
    processes.push(worker, api)
    return { owner: postgres.url, env, temporal, worker, api }
  }

  const backUp = async (owner: string, name: 'create' | 'restore') => {
    const { code, printed } = await runBackup(programs!, { DATABASE_URL: owner }, name, dump)
    assert.equal(code, 0, printed)
  }
  const request = async ({ api }: Deployment, method: string, path: string, body?: object) => {
    const answer = await fetch(api.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
    const read: any = await answer.json()
    assert.ok(answer.ok, JSON.stringify(read))
    return read
  }
  /** The number of rows of each table. */
  const counts = (url: string) =>
    connected(url, async (client) => {
      const { rows } = await client.query(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1",
      )
      const found: Record<string, number> = {}
      for (const { relname } of rows)
        found[relname] = Number((await client.query(`select count(*) from "${relname}"`)).rows[0].count)
      return found
    })

  it(`takes signals and cancellations within ${SECONDS} s, and has a workflow of each of ${SLEEPERS} waiting runs`, async () => {
    receiver = await startReceiver()
    stops.push(() => receiver.close())
    const before = await deploy({})
    const first = (method: string, path: string, body?: object) => request(before, method, path, body)
    const runOf = async (spec: string, count: number): Promise<string[]> => {
      const { workflow_id } = await first('POST', '/v1/workflows', { spec })
      const started = Array.from({ length: count }, () =>
        first('POST', `/v1/workflows/${workflow_id}/run`, { confirm: true }),
      )
      return (await Promise.all(started)).map(({ run_id }) => run_id)
    }
    const waiting = await runOf(WAITS, 6)
    const [slept] = await runOf(SLEEPS, 1)
    await connected(before.owner, async (client) => {
      await until(async () => {
        const { rows } = await client.query(
          "select count(*) from runs where status = 'running' and sleeps_until is not null",
        )
        return Number(rows[0].count) === 7 || undefined
      }, 'the runs to sleep')
      await copyRun(client, slept!, SLEEPERS)
      // The sweep has compared them with Temporal: it would not look them up again for hours.
      await client.query("update runs set checked = true where status = 'running'")
    })
    const dumped = await counts(before.owner)
    // While everything runs.
    await backUp(before.owner, 'create')
    for (const { child } of [before.worker, before.api]) child.kill('SIGKILL')
    await before.temporal.stop()

    let restored: Record<string, number> | undefined
    const restore = async (owner: string) => {
      await backUp(owner, 'restore')
      restored = await counts(owner)
    }
    const after = await deploy({ TEMPORAL_ADOPT: 'true' }, restore)
    const ready = Date.now()
    assert.deepEqual(restored, dumped)

    const connection = await Connection.connect({ address: after.temporal.address })
    stops.push(() => connection.close())
    const { workflow } = new Client({ connection })
    const [signalled, cancelled, terminated, stopped, asked, ...others] = waiting as [
      string,
      string,
      string,
      string,
      string,
      ...string[],
    ]
    const note = (what: string) =>
      process.stdout.write(`      after ${(Date.now() - ready) / 1_000} s: ${what}\n`)
    const status = async (id: string) => (await request(after, 'GET', `/v1/runs/${id}`)).status
    const ends = (id: string, as: string, seconds = SECONDS) =>
      until(
        async () => ((await status(id)) === as ? true : undefined),
        `${id} to be ${as}`,
        Math.max(1, seconds - (Date.now() - ready) / 1_000),
      )
    /** What an operator does in Temporal, repeated until it is found. */
    const found = (id: string, what: string, work: () => Promise<unknown>) =>
      until(
        () =>
          work().then(
            () => true as const,
            () => undefined,
          ),
        `${what} of ${id}`,
        Math.max(1, STARTED_SECONDS - (Date.now() - ready) / 1_000),
      )
    const handle = (id: string) => workflow.getHandle(`run:${id}`)
    await request(after, 'POST', `/v1/runs/${signalled}/signal`, { name: 'go', payload: {} })
    await request(after, 'POST', `/v1/runs/${cancelled}/cancel`)
    await Promise.all([
      ends(signalled, 'completed').then(() => note("a caller's signal")),
      ends(cancelled, 'cancelled').then(() => note("a caller's cancellation")),
      found(terminated, 'terminate', () => handle(terminated).terminate('drill'))
        .then(() => ends(terminated, 'terminated', STARTED_SECONDS))
        .then(() => note("an operator's terminate")),
      found(stopped, 'cancel', () => handle(stopped).cancel())
        .then(() => ends(stopped, 'cancelled', STARTED_SECONDS))
        .then(() => note("an operator's cancel")),
      found(asked, 'describe', () => handle(asked).describe()).then(() => note('a look at a run')),
      connected(after.owner, (client) =>
        until(
          async () => {
            const { rows } = await client.query(
              "select count(*) from runs where status = 'running' and updated_at < (select lost_at from sweep_state)",
            )
            return rows[0].count === '0' || undefined
          },
          'each run to be looked up',
          SECONDS,
        ),
      ).then(() => note('each run was looked up')),
    ])
    await connected(after.owner, (client) =>
      until(
        async () => {
          const { rows } = await client.query("select count(*) from runs where status = 'queued'")
          return rows[0].count === '0' || undefined
        },
        'each run to have a workflow',
        STARTED_SECONDS,
      ),
    )
    note('each run has a workflow')
    const open = await workflow.workflowService.countWorkflowExecutions({
      namespace: 'default',
      query: "WorkflowType = 'run' and ExecutionStatus = 'Running'",
    })
    for (const id of [...others, asked]) {
      await request(after, 'POST', `/v1/runs/${id}/signal`, { name: 'go', payload: {} })
      await until(async () => (await status(id)) === 'completed', `the end of ${id}`)
    }
    assert.ok(Number(open.count) >= SLEEPERS, `${open.count} open workflows`)
  })
})
