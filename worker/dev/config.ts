import { z } from 'zod'
import { bootstrapSettings, ConfigError, readSettings, sharedSettings } from '../../db/config.ts'

const port = z.coerce.number().int().min(1).max(65_535)

const settings = sharedSettings.extend({
  DATABASE_URL: sharedSettings.shape.DATABASE_URL.optional(),
  HOST: z.string().default('127.0.0.1'),
  PORT: port.default(8080),
  WORKER_PORT: port.default(8081),
  /** Of the embedded PostgreSQL; without one a free port is chosen and kept. */
  POSTGRES_PORT: port.optional(),
  TEMPORAL_ADDRESS: z.string().min(1).optional(),
  /** Of the embedded Temporal server. */
  TEMPORAL_PORT: port.default(7233),
  TEMPORAL_UI_PORT: port.default(8233),
  TEMPORAL_CLI_PATH: z.string().min(1).optional(),
  ...bootstrapSettings.shape,
})

export type StartConfig = z.output<typeof settings>

/** The settings of `npm start`. Throws ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): StartConfig {
  const config = readSettings(settings, env)
  if (config.NODE_ENV === 'production' && !config.DATABASE_URL)
    throw new ConfigError('DATABASE_URL is missing: in production the embedded PostgreSQL is not used')
  return config
}
