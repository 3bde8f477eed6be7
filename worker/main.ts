import { ConfigError } from '../db/model/config-error.ts'
import { buildOf } from '../db/process/build.ts'
import { onStopSignal } from '../db/process/stop-signals.ts'
import { redactText } from '../workflows/shared/redact.ts'
import { readConfig } from './config.ts'
import { createContext } from './context.ts'
import { serveHealth } from './health.ts'
import { serve, shutdownLimitMs } from './serve.ts'

/** The worker process: runs workflows and activities. Only workers start runs and deliveries. */
async function main(): Promise<void> {
  process.env.TZ = 'UTC'
  const config = readConfig(process.env)
  const context = await createContext(config)
  const stopping = new AbortController()
  const [codec] = context.dataConverter.payloadCodecs ?? []
  const health = await serveHealth({
    db: context.db,
    log: context.log,
    build: buildOf(config),
    namespace: config.TEMPORAL_NAMESPACE,
    host: config.HOST,
    port: config.WORKER_PORT,
    stopping: stopping.signal,
    metrics: context.metricsText,
    metricsToken: config.METRICS_TOKEN,
    codec: codec && {
      codec,
      token: config.CODEC_TOKEN,
      uiOrigin: config.TEMPORAL_UI_URL && new URL(config.TEMPORAL_UI_URL).origin,
      log: context.log,
    },
  })
  onStopSignal((signal) => {
    context.log.info({ signal }, 'stopping')
    // Exits where a database or an activity hangs.
    setTimeout(() => process.exit(1), shutdownLimitMs(context))
    stopping.abort()
  })
  await serve(context, health, stopping.signal)
  await health.close()
  await context.close()
  process.exit()
}

main().catch((error: Error) => {
  const line = error instanceof ConfigError ? error.message : redactText(error.stack ?? String(error))
  process.stderr.write(`agx worker: ${line}\n`)
  process.exit(1)
})
