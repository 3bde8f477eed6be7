import type { Traces } from '../../model/spans.ts'
import type { Logger } from '../log.ts'
import type { TraceConfig } from './open-telemetry.ts'

/**
 * The traces of the process `api` or `worker`; undefined unless an OTLP endpoint or exporter is configured. The packages
 * of OpenTelemetry are loaded only then.
 */
export async function startTraces(
  process: string,
  config: TraceConfig,
  log: Logger,
): Promise<Traces | undefined> {
  const { OTEL_TRACES_EXPORTER: exporter, OTEL_SDK_DISABLED: disabled } = config
  const endpoint = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT
  if (disabled || exporter === 'none' || (exporter === undefined && endpoint === undefined)) return undefined
  const { openTelemetry } = await import('./open-telemetry.ts')
  return openTelemetry(process, config, log)
}
