import { z } from 'zod'
import { readSettings, sharedSettings } from '../db/config.ts'

const settings = sharedSettings.extend({
  PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  HOST: z.string().default('127.0.0.1'),
  /** How many proxies in front of us append to X-Forwarded-For. */
  TRUSTED_PROXIES: z.coerce.number().int().min(0).max(10).default(0),
})

export type ApiConfig = z.output<typeof settings>

/** Throws ConfigError. */
export const readConfig = (env: NodeJS.ProcessEnv): ApiConfig => readSettings(settings, env)
