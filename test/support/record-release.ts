/**
 * Records this version for `test/upgrade.test.ts`, at a release: `node --import tsx test/support/record-release.ts`.
 * Needs the programs of an installed PostgreSQL (the embedded one has no `pg_dump`); its version is the oldest that can
 * read the dump. A recorded release is never overwritten: what it holds is what its users have.
 *
 * The dump has work in every state in which it waits: runs that wait, calls and deliveries between two attempts, and
 * what the API accepted while there was no worker.
 */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { bootstrap } from '../../db/access/bootstrap.ts'
import { migrations } from '../../db/migrations/index.ts'
import { migrate } from '../../db/migrations/migrate.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { caller, signInOwner } from './caller.ts'
import { exampleOf } from './example-of.ts'
import { installedPostgres, startInstalledPostgres } from './installed-postgres.ts'
import { startOwnTemporal } from './own-temporal.ts'
import { startProcess } from './process.ts'
import { fileOf, KEY, type Known, ON_CONTACT, OUTSIDE, OWNER, RELEASE_ENV, WAITING } from './releases.ts'
import { hashesOf, sentBy } from './sent-migrations.ts'
import { until } from './until.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const programs = installedPostgres()
if (!programs) throw new Error('no PostgreSQL is installed')
if (existsSync(fileOf(version, 'json')))
  throw new Error(`${version} is recorded: give the release another version`)

const [postgres, temporal] = await Promise.all([startInstalledPostgres(programs), startOwnTemporal()])
// For the databases of tests.
process.env.TEST_DATABASE_URL = postgres.url
await migrate(postgres.url)
await bootstrap(
  { url: postgres.url },
  { BOOTSTRAP_EMAIL: OWNER.email, BOOTSTRAP_PASSWORD: OWNER.password, BOOTSTRAP_API_KEY: KEY },
)
const env = { ...RELEASE_ENV, TEMPORAL_ADDRESS: temporal.address, TEMPORAL_TASK_QUEUE: randomUUID() }
const start = (name: 'api' | 'worker') => startProcess(name, { databaseUrl: postgres.url, env })
const [worker, api] = await Promise.all([start('worker'), start('api')])
const v1 = caller(`${api.url}/v1`, { authorization: `Bearer ${KEY}` })
const app = await signInOwner({ apiUrl: api.url, owner: OWNER })

const known = await setUp()
await Promise.all(Object.keys(WAITING).map(startRun))
await until(waits, async () =>
  JSON.stringify([await v1('GET', '/runs?limit=200'), await app('GET', '/deliveries')]),
)
worker.child.kill('SIGKILL')
await worker.exited
// Accepted, and in work nowhere.
await v1('POST', '/objects/contacts', { first_name: 'Late', email: 'late@example.com' })
await startRun('Waits for a signal')
known.records = await Promise.all(
  known.records.map(async ({ path }) => ({ path, body: await v1<Record<string, unknown>>('GET', path) })),
)
await api.stop()

const dump = execFileSync(
  join(programs, 'pg_dump'),
  ['--inserts', '--rows-per-insert=100', '--no-owner', '--enable-row-security', postgres.url],
  { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 },
)
mkdirSync(new URL('.', fileOf(version, 'json')), { recursive: true })
// psql's own commands, which a server does not know.
writeFileSync(
  fileOf(version, 'sql.gz'),
  gzipSync(dump.replaceAll(/^\\(un)?restrict .*$/gm, ''), { level: 9 }),
)
writeFileSync(fileOf(version, 'json'), `${JSON.stringify(known, null, 2)}\n`)
await Promise.all([postgres.stop(), temporal.stop()])

/** What an owner sets up once: a record of each kind, workflows and webhooks. */
async function setUp(): Promise<Known> {
  const records: Known['records'] = []
  for (const kind of kindNames)
    await v1('POST', `/objects/${kind}`, await exampleOf(kind, create)).then((body) => note(kind, body))
  async function create(kind: string, values: object) {
    const body = await v1<{ id: string }>('POST', `/objects/${kind}`, values)
    note(kind, body)
    return body
  }
  function note(kind: string, body: unknown) {
    const { id } = body as { id: string }
    records.push({ path: `/objects/${kind}/${id}`, body: {} })
  }
  for (const [name, nodes] of Object.entries(WAITING))
    await v1('POST', '/workflows', { spec: `name: ${name}\nnodes:\n  ${nodes}\n` })
  const { workflow_id } = await v1<{ workflow_id: string }>('POST', '/workflows', { spec: ON_CONTACT })
  await v1('POST', `/workflows/${workflow_id}/activate`)
  const incoming = await app<{ url: string; secret: string }>('POST', '/webhooks/incoming', { name: 'Form' })
  const outgoing = await app<{ secret: string }>('POST', '/webhooks/outgoing', {
    name: 'Warehouse',
    url: `${OUTSIDE}/hooks`,
    events: ['contact.created'],
  })
  // Its delivery waits between two attempts.
  await v1('POST', '/objects/contacts', { first_name: 'Early', email: 'early@example.com' })
  return {
    incoming: { path: new URL(incoming.url).pathname, secret: incoming.secret },
    outgoing: { secret: outgoing.secret },
    migrations: hashesOf(await sentBy(migrations)),
    records,
  }
}

async function startRun(name: string): Promise<void> {
  await v1('POST', '/workflows/run-by-name', { name, confirm: true })
}

/** Whether each run waits, and calls and deliveries have failed once. */
async function waits(): Promise<boolean> {
  // Within the limit of requests of the key.
  await sleep(1_000)
  const { data } = await v1<{ data: { run_id: string; workflow_name: string; status: string }[] }>(
    'GET',
    '/runs?limit=200',
  )
  const runs = await Promise.all(
    data.map(({ run_id }) =>
      v1<{
        workflow_name: string
        status: string
        waits: unknown[]
        nodes: { status: string; attempts?: unknown[] }[]
      }>('GET', `/runs/${run_id}`),
    ),
  )
  const open = runs.filter(({ status }) => status === 'running')
  const { data: deliveries } = await app<{ data: { attempt_count: number }[] }>('GET', '/deliveries')
  return (
    open.length === Object.keys(WAITING).length &&
    runs.every(({ status }) => status === 'running' || status === 'completed') &&
    open.every(
      ({ waits, nodes }) =>
        waits.length > 0 ||
        nodes.some(({ status, attempts }) => status === 'waiting' || (attempts && attempts.length > 0)),
    ) &&
    deliveries.length > 0 &&
    deliveries.every(({ attempt_count }) => attempt_count > 0)
  )
}
