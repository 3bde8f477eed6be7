import type { z } from 'zod'
import { apiVariables, readVariables, sharedVariables } from '../db/process/config.ts'

const variables = sharedVariables.extend(apiVariables.shape)

export type ApiConfig = z.output<typeof variables>

/** Whether clients reach the API by https: its proxy or balancer terminates TLS. */
export const isHttps = ({ PUBLIC_URL }: Pick<ApiConfig, 'PUBLIC_URL'>): boolean =>
  PUBLIC_URL?.startsWith('https:') ?? false

/** Throws ConfigError. */
export const readConfig = (env: NodeJS.ProcessEnv): ApiConfig => readVariables(variables, env)
