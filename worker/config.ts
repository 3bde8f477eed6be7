import type { z } from 'zod'
import { readSettings, sharedSettings, workerSettings } from '../db/process/config.ts'

const settings = sharedSettings.extend(workerSettings.shape)

export type WorkerConfig = z.output<typeof settings>

/** Throws ConfigError. */
export const readConfig = (env: NodeJS.ProcessEnv): WorkerConfig => readSettings(settings, env)
