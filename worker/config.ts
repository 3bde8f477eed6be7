import { z } from 'zod'
import { readSettings, sharedSettings } from '../db/config.ts'

const settings = sharedSettings.extend({
  /** Of the worker's own /healthz and /readyz. */
  WORKER_PORT: z.coerce.number().int().min(0).max(65_535).default(8081),
  HOST: z.string().default('127.0.0.1'),
  TEMPORAL_TASK_QUEUE: z.string().min(1).default('agx'),
})

export type WorkerConfig = z.output<typeof settings>

/** Throws ConfigError. */
export const readConfig = (env: NodeJS.ProcessEnv): WorkerConfig => readSettings(settings, env)
