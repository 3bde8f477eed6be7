import type { z } from 'zod'
import { readVariables, sharedVariables, workerVariables } from '../db/process/config.ts'

const variables = sharedVariables.extend(workerVariables.shape)

export type WorkerConfig = z.output<typeof variables>

/** Throws ConfigError. */
export const readConfig = (env: NodeJS.ProcessEnv): WorkerConfig => readVariables(variables, env)
