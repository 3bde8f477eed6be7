import { z } from 'zod'
import { ConfigError } from '../../db/model/config-error.ts'
import {
  apiVariables,
  bootstrapVariables,
  migrationVariables,
  port,
  readVariables,
  sharedVariables,
  workerVariables,
} from '../../db/process/config.ts'

const variables = sharedVariables.extend({
  ...apiVariables.shape,
  ...workerVariables.shape,
  ...bootstrapVariables.shape,
  ...migrationVariables.shape,
  DATABASE_URL: sharedVariables.shape.DATABASE_URL.optional(),
  PORT: port(1).default(8080),
  WORKER_PORT: port(1).default(8081),
  /** Port of the embedded PostgreSQL. Default: a free port, which is kept. */
  POSTGRES_PORT: port(1).optional(),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^\s/]+:\d{1,5}$/, 'must be a host and port such as 127.0.0.1:7233')
    .optional(),
  /** Port of the embedded Temporal server. */
  TEMPORAL_PORT: port(1).default(7233),
  TEMPORAL_UI_PORT: port(1).default(8233),
  TEMPORAL_CLI_PATH: z.string().optional(),
})

export type StartConfig = z.output<typeof variables>

/** The settings of `npm start` and of all processes that it starts. Throws ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): StartConfig {
  const config = readVariables(variables, env)
  if (config.NODE_ENV === 'production' && !config.DATABASE_URL)
    throw new ConfigError('DATABASE_URL is missing: the embedded PostgreSQL is not used in production')
  requireDifferent(portsOf(config))
  return config
}

function portsOf(config: StartConfig): [setting: string, port: number | undefined][] {
  return [
    ['PORT', config.PORT],
    ['WORKER_PORT', config.WORKER_PORT],
    ['POSTGRES_PORT', config.DATABASE_URL ? undefined : config.POSTGRES_PORT],
    ['TEMPORAL_PORT', config.TEMPORAL_ADDRESS ? undefined : config.TEMPORAL_PORT],
    ['TEMPORAL_UI_PORT', config.TEMPORAL_ADDRESS ? undefined : config.TEMPORAL_UI_PORT],
  ]
}

function requireDifferent(ports: [setting: string, port: number | undefined][]): void {
  const taken = new Map<number, string>()
  for (const [setting, port] of ports) {
    if (port === undefined) continue
    const other = taken.get(port)
    if (other) throw new ConfigError(`${other} and ${setting} are both ${port}: set different ports`)
    taken.set(port, setting)
  }
}
