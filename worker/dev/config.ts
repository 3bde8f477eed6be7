import { z } from 'zod'
import { ConfigError } from '../../db/model/config-error.ts'
import {
  about,
  apiVariables,
  bootstrapVariables,
  migrationVariables,
  port,
  readVariables,
  sharedVariables,
  workerVariables,
} from '../../db/process/config.ts'

/** All variables: those of both processes, of the first start, and of what only `npm start` starts. */
export const startVariables = sharedVariables.extend({
  ...apiVariables.shape,
  ...workerVariables.shape,
  ...bootstrapVariables.shape,
  ...migrationVariables.shape,
  DATABASE_URL: sharedVariables.shape.DATABASE_URL.optional(),
  // No balancer polls it.
  SHUTDOWN_DELAY: apiVariables.shape.SHUTDOWN_DELAY.unwrap().default(0),
  PORT: port(1).default(8080),
  WORKER_PORT: port(1).default(8081),
  POSTGRES_PORT: port(1)
    .optional()
    .meta(about('port of the embedded PostgreSQL', 'a free one, which is kept')),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^\s/]+:\d{1,5}$/, 'must be a host and port such as 127.0.0.1:7233')
    .optional()
    .meta(
      about(
        'address of an external Temporal server; api and worker read it too, as their Temporal client does',
        'the embedded one, with `npm start`',
      ),
    ),
  TEMPORAL_PORT: port(1).default(7233).meta(about('port of the embedded Temporal server')),
  TEMPORAL_UI_PORT: port(1).default(8233).meta(about('port of its UI')),
  TEMPORAL_CLI_PATH: z
    .string()
    .optional()
    .meta(about('a Temporal CLI to use', '`temporal` on PATH, the cache, a download, a build')),
})

export type StartConfig = z.output<typeof startVariables>

/** The variables of `npm start` and of all processes that it starts. Throws ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): StartConfig {
  const config = readVariables(startVariables, env)
  if (config.NODE_ENV === 'production' && !config.DATABASE_URL)
    throw new ConfigError('DATABASE_URL is missing: the embedded PostgreSQL is not used in production')
  if (config.WORKER_POOL)
    throw new ConfigError(
      'WORKER_POOL is set: `npm start` has one worker, which runs everything; the worker of a pool is `npm run worker`',
    )
  requireDifferent(portsOf(config))
  return config
}

function portsOf(config: StartConfig): [variable: string, port: number | undefined][] {
  return [
    ['PORT', config.PORT],
    ['WORKER_PORT', config.WORKER_PORT],
    ['POSTGRES_PORT', config.DATABASE_URL ? undefined : config.POSTGRES_PORT],
    ['TEMPORAL_PORT', config.TEMPORAL_ADDRESS ? undefined : config.TEMPORAL_PORT],
    ['TEMPORAL_UI_PORT', config.TEMPORAL_ADDRESS ? undefined : config.TEMPORAL_UI_PORT],
  ]
}

function requireDifferent(ports: [variable: string, port: number | undefined][]): void {
  const taken = new Map<number, string>()
  for (const [variable, port] of ports) {
    if (port === undefined) continue
    const other = taken.get(port)
    if (other) throw new ConfigError(`${other} and ${variable} are both ${port}: set different ports`)
    taken.set(port, variable)
  }
}
