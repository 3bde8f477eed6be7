import type { z } from 'zod'
import { apiSettings, readSettings, sharedSettings } from '../db/config.ts'

const settings = sharedSettings.extend(apiSettings.shape)

export type ApiConfig = z.output<typeof settings>

/** Throws ConfigError. */
export const readConfig = (env: NodeJS.ProcessEnv): ApiConfig => readSettings(settings, env)
