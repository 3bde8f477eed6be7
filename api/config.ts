import type { z } from 'zod'
import { apiSettings, readSettings, sharedSettings } from '../db/process/config.ts'

const settings = sharedSettings.extend(apiSettings.shape)

export type ApiConfig = z.output<typeof settings>

/** Whether clients reach the API by https: its proxy or balancer terminates TLS. */
export const isHttps = ({ PUBLIC_URL }: Pick<ApiConfig, 'PUBLIC_URL'>): boolean =>
  PUBLIC_URL?.startsWith('https:') ?? false

/** Throws ConfigError. */
export const readConfig = (env: NodeJS.ProcessEnv): ApiConfig => readSettings(settings, env)
