import { z } from 'zod'
import { ConfigError, readSettings, sharedSettings } from '../../db/config.ts'
import { isKey } from '../../db/keys.ts'

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
  BOOTSTRAP_EMAIL: z.email().optional(),
  BOOTSTRAP_PASSWORD: z.string().min(12, 'must have at least 12 characters').optional(),
  BOOTSTRAP_API_KEY: z
    .string()
    .refine(isKey, 'must be agx_, 40 letters or digits, and 6 of their checksum')
    .optional(),
})

export type StartConfig = z.output<typeof settings>

/** The settings of `npm start`. Throws ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): StartConfig {
  const config = readSettings(settings, env)
  if (config.NODE_ENV === 'production' && !config.DATABASE_URL)
    throw new ConfigError('DATABASE_URL is missing: in production the embedded PostgreSQL is not used')
  return config
}
