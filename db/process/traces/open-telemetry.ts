import { setTimeout as pause } from 'node:timers/promises'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { z } from 'zod'
import { redactText } from '../../../workflows/shared/redact.ts'
import type { EndedSpan, Traces } from '../../model/spans.ts'
import type { sharedVariables } from '../config.ts'
import type { Logger } from '../log.ts'

export type TraceConfig = Pick<
  z.output<typeof sharedVariables>,
  Extract<keyof z.output<typeof sharedVariables>, `OTEL_${string}`>
>

/** Time limit of the last export: an unreachable exporter must not delay the end of the process. */
const CLOSE_MS = 2_000
/** Minimum interval between warnings that spans could not be exported. */
const WARN_MS = 60_000
/** ExportResultCode.SUCCESS, from a package that is not a dependency. */
const SUCCESS = 0

/**
 * Exports spans by OTLP over HTTP, in batches. The exporter reads the other OTEL_EXPORTER_* variables itself: headers,
 * timeout, compression, certificates.
 */
export function openTelemetry(process: string, config: TraceConfig, log: Logger): Traces {
  const protocol =
    config.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? config.OTEL_EXPORTER_OTLP_PROTOCOL ?? 'http/protobuf'
  const exporter = protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter()
  const sampler = samplerOf(config)
  const ids = new GivenIds()
  const service = resourceFromAttributes({ 'service.name': `agx-${process}` })
  const provider = new TracerProvider({
    // Later attributes win: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are set by the operator.
    resource: service.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter: withWarnings(exporter, log), ...batches(config) })],
    idGenerator: ids,
    sampler,
  })
  const tracer = provider.getTracer('agx')

  return {
    record(span) {
      const traceId = span.traceId.replaceAll('-', '')
      Object.assign(ids, { traceId, spanId: span.id })
      const started = tracer.startSpan(
        span.name,
        { kind: KINDS[span.kind], startTime: span.start, attributes: withValues(span.attributes) },
        span.parent === undefined
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, {
              traceId,
              spanId: span.parent,
              isRemote: true,
              traceFlags: TraceFlags.SAMPLED,
            }),
      )
      if (span.failed) started.setStatus({ code: SpanStatusCode.ERROR })
      started.end(Math.max(span.start, span.end))
    },
    isSampled: (traceId) =>
      sampler.shouldSample(ROOT_CONTEXT, traceId.replaceAll('-', '')).decision ===
      SamplingDecision.RECORD_AND_SAMPLED,
    close: () => Promise.race([provider.shutdown().catch(() => {}), pause(CLOSE_MS)]),
  }
}

const KINDS: Record<EndedSpan['kind'], SpanKind> = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  internal: SpanKind.INTERNAL,
}

/** OpenTelemetry's defaults: up to 2,048 spans wait at most 5 s, further spans are dropped. */
function batches(config: TraceConfig) {
  const options = {
    scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
    exportTimeoutMillis: config.OTEL_BSP_EXPORT_TIMEOUT,
    maxQueueSize: config.OTEL_BSP_MAX_QUEUE_SIZE,
    maxExportBatchSize: config.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
  }
  return withValues(options) as { [Name in keyof typeof options]?: number }
}

/**
 * Samples by the trace id alone, even for the `parentbased_` samplers: only the id is stored, and all processes of a
 * trace must decide alike.
 */
function samplerOf({
  OTEL_TRACES_SAMPLER: name = 'always_on',
  OTEL_TRACES_SAMPLER_ARG: ratio = 1,
}: TraceConfig) {
  if (name.endsWith('always_on')) return new AlwaysOnSampler()
  if (name.endsWith('always_off')) return new AlwaysOffSampler()
  return new TraceIdRatioBasedSampler(ratio)
}

/** Assigns each span its predetermined ids. */
class GivenIds {
  traceId = ''
  spanId = ''
  generateTraceId = () => this.traceId
  generateSpanId = () => this.spanId
}

/** Logs that spans were lost, at most once a minute. */
function withWarnings(exporter: SpanExporter, log: Logger): SpanExporter {
  let warned = Number.NEGATIVE_INFINITY
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code !== SUCCESS && performance.now() - warned > WARN_MS) {
          warned = performance.now()
          const reason = redactText(result.error?.message ?? 'unknown')
          log.warn(
            { spans: spans.length, reason },
            'spans could not be exported (OTEL_EXPORTER_OTLP_ENDPOINT)',
          )
        }
        done(result)
      })
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  }
}

/** The attributes that have a value. */
const withValues = (attributes: EndedSpan['attributes']) =>
  Object.fromEntries(
    Object.entries(attributes).filter(([, value]) => value !== undefined && value !== null),
  ) as Record<string, string | number>
