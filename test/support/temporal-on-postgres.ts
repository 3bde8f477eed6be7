/**
 * A Temporal server that stores in PostgreSQL, as in production, for the tests:
 *
 *   node --import tsx test/support/temporal-on-postgres.ts npx mocha test/worker/runs.test.ts
 *
 * Runs the command with TEST_TEMPORAL_ADDRESS set, then stops the server and removes its data; exits with the command's
 * code. Without a command it prints the address and serves until Ctrl-C. The first call builds the server with Go 1.25 or
 * later into the user's cache (some minutes); its version is that of the development server.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import { msToTs } from '@temporalio/common/lib/time.js'
import { DYNAMIC_CONFIG, prepareServer } from '../../worker/dev/temporal-server.ts'
import { searchAttributes } from '../../worker/search-attributes.ts'
import { temporaryFolder } from './folder.ts'
import { quietPort } from './quiet-port.ts'
import { reaper } from './reaper.ts'
import { TEST_DYNAMIC_CONFIG } from './temporal-settings.ts'
import { startTestPostgres } from './test-postgres.ts'

const GO_MOD = new URL('../../worker/dev/temporal-cli/go.mod', import.meta.url)
const MODULE = 'go.temporal.io/server'
const PLUGIN = 'postgres12_pgx'
const NAMESPACE = 'default'
const START_MS = 60_000
/** temporal.api.enums.v1.IndexedValueType. */
const VALUE_TYPES: Record<string, number> = { KEYWORD: 2, DATETIME: 6 }
const SERVICES = ['frontend', 'matching', 'history', 'worker'] as const
/** The databases, with the names of their schemas in Temporal's schema tool. */
const DATABASES = { temporal: 'temporal', temporal_visibility: 'visibility' }

const say = (line: string) => process.stderr.write(`${line}\n`)

const programs = build()
const postgres = await startTestPostgres()
const folder = temporaryFolder()
const { username, password, host, hostname, port } = new URL(postgres.url)
createSchemas()
const address = `127.0.0.1:${await configure()}`
const server = startServer()
const stopServer = reaper(`kill -KILL ${server.pid}; rm -rf '${folder}'`)
const command = process.argv.slice(2)
let code = 1
try {
  await prepare()
  if (command.length > 0) code = await run(command)
  else {
    say(`TEST_TEMPORAL_ADDRESS=${address} (Ctrl-C stops it)`)
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
    code = 0
  }
} finally {
  await stopServer()
  await postgres.stop()
}
process.exit(code)

/** Builds the server and its schema tool, unless the cache has them. @returns their paths. */
function build() {
  const version = new RegExp(`${MODULE} (v\\S+)`).exec(readFileSync(GO_MOD, 'utf8'))![1]!
  const cache = join(
    process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
    'agx',
    `temporal-server-${version}`,
  )
  const [server, sql] = [join(cache, 'server'), join(cache, 'sql')]
  if (!existsSync(server) || !existsSync(sql)) {
    say(`building the Temporal server ${version} with Go (some minutes, once)`)
    mkdirSync(cache, { recursive: true })
    const packages = ['cmd/server', 'cmd/tools/sql'].map((name) => `${MODULE}/${name}@${version}`)
    execFileSync('go', ['install', '-trimpath', '-ldflags', '-s -w', ...packages], {
      env: { ...process.env, GOBIN: cache, CGO_ENABLED: '0' },
      stdio: 'inherit',
    })
  }
  return { server, sql }
}

function createSchemas(): void {
  for (const [database, schema] of Object.entries(DATABASES)) {
    const tool = (...args: string[]) =>
      execFileSync(programs.sql, args, {
        env: {
          ...process.env,
          SQL_PLUGIN: PLUGIN,
          SQL_HOST: hostname,
          SQL_PORT: port,
          SQL_DATABASE: database,
          SQL_USER: username,
          SQL_PASSWORD: password,
        },
        // Its log; an error has it.
        stdio: 'pipe',
      })
    tool('create-database')
    tool('setup-schema', '-v', '0.0')
    tool('update-schema', '--schema-name', `postgresql/v12/${schema}`)
  }
}

/** Writes the configuration. @returns the port of the frontend. */
async function configure(): Promise<number> {
  const ports = await Promise.all(SERVICES.flatMap(() => [quietPort(), quietPort()]))
  const store = (databaseName: string) => ({
    sql: {
      pluginName: PLUGIN,
      databaseName,
      connectAddr: host,
      connectProtocol: 'tcp',
      user: username,
      password,
      maxConns: 20,
      maxIdleConns: 20,
    },
  })
  const services = SERVICES.map((name, n) => {
    // Temporal stores the second as a smallint.
    const [grpcPort, membershipPort] = ports.slice(n * 2)
    return [name, { rpc: { grpcPort, membershipPort, bindOnLocalHost: true } }]
  })
  const dynamic = Object.entries({ ...DYNAMIC_CONFIG, ...TEST_DYNAMIC_CONFIG })
  const dynamicFile = join(folder, 'dynamic.yaml')
  // JSON is YAML.
  writeFileSync(
    join(folder, 'base.yaml'),
    JSON.stringify({
      log: { stdout: true, level: 'error' },
      persistence: {
        defaultStore: 'store',
        visibilityStore: 'visibility',
        numHistoryShards: 4,
        datastores: { store: store('temporal'), visibility: store('temporal_visibility') },
      },
      global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
      services: Object.fromEntries(services),
      clusterMetadata: {
        enableGlobalNamespace: false,
        failoverVersionIncrement: 10,
        masterClusterName: 'active',
        currentClusterName: 'active',
        clusterInformation: {
          active: {
            enabled: true,
            initialFailoverVersion: 1,
            rpcName: 'frontend',
            rpcAddress: `127.0.0.1:${ports[0]}`,
          },
        },
      },
      dynamicConfigClient: { filepath: dynamicFile, pollInterval: '10s' },
    }),
  )
  writeFileSync(
    dynamicFile,
    JSON.stringify(Object.fromEntries(dynamic.map(([key, value]) => [key, [{ value }]]))),
  )
  return ports[0]!
}

function startServer() {
  const log = openSync(join(folder, 'temporal.log'), 'a')
  return spawn(programs.server, ['--root', '/', '--config', folder, '--allow-no-auth', 'start'], {
    // Ctrl-C reaches only this process, which stops it last.
    detached: true,
    stdio: ['ignore', log, log],
  })
}

/** Creates the namespace and our search attributes as soon as the server answers. */
async function prepare(): Promise<void> {
  for (const deadline = Date.now() + START_MS; ; await sleep(500)) {
    try {
      const connection = await Connection.connect({ address, connectTimeout: 1_000 })
      try {
        await create(connection)
        break
      } finally {
        await connection.close()
      }
    } catch (error) {
      if (server.exitCode !== null || Date.now() > deadline)
        throw new Error(`Temporal did not start:\n${readFileSync(join(folder, 'temporal.log'), 'utf8')}`, {
          cause: error,
        })
    }
  }
  await prepareServer(address, NAMESPACE, START_MS)
}

async function create({ workflowService, operatorService }: Connection): Promise<void> {
  await workflowService
    .registerNamespace({ namespace: NAMESPACE, workflowExecutionRetentionPeriod: msToTs('1 day') })
    .catch((error: Error) => {
      if (!/already exists/.test(error.message)) throw error
    })
  const names = Object.values(searchAttributes).map(({ name, type }) => [name, VALUE_TYPES[type]])
  await operatorService.addSearchAttributes({
    namespace: NAMESPACE,
    searchAttributes: Object.fromEntries(names),
  })
}

async function run([program, ...args]: string[]): Promise<number> {
  const child = spawn(program!, args, {
    env: { ...process.env, TEST_TEMPORAL_ADDRESS: address },
    stdio: 'inherit',
  })
  // Ctrl-C reaches the command too; the server is stopped when it has ended.
  process.on('SIGINT', () => {})
  const [exitCode] = await once(child, 'exit')
  return exitCode ?? 1
}
