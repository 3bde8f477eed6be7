import { checkDatabase, checkDataDir, checkPort, checkTemporal } from './checks.ts'
import { readConfig } from './config.ts'
import type { Stack } from './parts.ts'
import { ProcessRecord } from './process-record.ts'
import { say } from './say.ts'
import { findTemporalCli } from './temporal-cli.ts'

/** Checks all variables before anything is started. Throws ConfigError: one line that names the variable. */
export async function prepare(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Stack> {
  const config = readConfig(env)
  checkDataDir(config.DATA_DIR)
  // Files of this process and of those that it starts are for their owner only.
  process.umask(0o077)
  const record = new ProcessRecord(config.DATA_DIR)
  const ended = await record.takeOver()
  if (ended.length) say(`ended processes of a killed start: ${ended.join(', ')}`)
  await checkPort('PORT', config.PORT, config.HOST)
  await checkPort('WORKER_PORT', config.WORKER_PORT, config.HOST)
  if (config.TEMPORAL_ADDRESS) await checkTemporal(env, config.TEMPORAL_ADDRESS, config.TEMPORAL_NAMESPACE)
  else {
    await checkPort('TEMPORAL_PORT', config.TEMPORAL_PORT, '127.0.0.1')
    await checkPort('TEMPORAL_UI_PORT', config.TEMPORAL_UI_PORT, '127.0.0.1')
  }
  if (config.DATABASE_URL) await checkDatabase(config.DATABASE_OWNER_URL ?? config.DATABASE_URL)
  const temporalCli = config.TEMPORAL_ADDRESS
    ? undefined
    : await findTemporalCli({ path: config.TEMPORAL_CLI_PATH, env, progress: say, signal })
  return { config, env, record, temporalCli, parts: [], signal }
}
