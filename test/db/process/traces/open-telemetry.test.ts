import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { newSpanId, PendingSpans, type Traces } from '../../../../db/model/spans.ts'
import { readVariables, sharedVariables } from '../../../../db/process/config.ts'
import { createLogger } from '../../../../db/process/log.ts'
import { startTraces } from '../../../../db/process/traces/start.ts'
import { startCollector } from '../../../support/otlp.ts'
import { quietPort } from '../../../support/quiet-port.ts'

const SHARED = { DATABASE_URL: 'postgres://localhost/agx' }

describe('traces', () => {
  let collector: Awaited<ReturnType<typeof startCollector>>
  beforeEach(async () => {
    collector = await startCollector()
  })
  const lines: string[] = []
  const log = createLogger('api', 'info', { write: (line: string) => void lines.push(line) })
  const set = new Set<string>()
  /** Like the start of a process: the exporter reads the environment itself. */
  const start = (env: Record<string, string>) => {
    for (const [name, value] of Object.entries(env)) {
      set.add(name)
      process.env[name] = value
    }
    return startTraces('api', readVariables(sharedVariables, { ...SHARED, ...env }), log)
  }
  afterEach(() => {
    collector.close()
    for (const name of set) delete process.env[name]
    set.clear()
    lines.length = 0
  })

  const record = (traces: Traces | undefined, traceId: string = randomUUID()) => {
    const now = Date.now()
    traces!.record({
      name: 'a',
      kind: 'internal',
      traceId,
      id: newSpanId(),
      start: now - 5,
      end: now,
      attributes: { 'agx.run_id': 'x', 'agx.path': undefined },
    })
    return traceId.replaceAll('-', '')
  }

  it('are off unless they are configured, or if they are switched off', async () => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }
    assert.equal(await start({}), undefined)
    assert.equal(await start({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }), undefined)
    assert.equal(await start({ ...endpoint, OTEL_SDK_DISABLED: 'true' }), undefined)
    const traces = await start(endpoint)
    assert.ok(traces)
    await traces.close()
  })

  it('are sent as protobuf by default, and at the end of the process', async () => {
    const traces = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    const id = record(traces)
    await traces!.close()
    assert.deepEqual(
      collector.requests.map(({ type, path }) => [type, path]),
      [['application/x-protobuf', '/v1/traces']],
    )
    assert.ok(collector.requests[0]!.body.includes(Buffer.from(id, 'hex')))
  })

  it('have the name of the service that the operator chose', async () => {
    const env = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    }
    for (const name of ['agx-api', 'chosen']) {
      const traces = await start({ ...env, ...(name === 'chosen' && { OTEL_SERVICE_NAME: name }) })
      record(traces)
      await traces!.close()
      assert.equal(collector.spans.at(-1)!.service, name)
      assert.equal(collector.requests.at(-1)!.path, '/own')
    }
  })

  it('are sampled by their id, so that all processes decide alike', async () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.5',
    }
    const all = await Promise.all([start(env), start(env)])
    const ids = Array.from({ length: 100 }, () => randomUUID() as string)
    const sampled = ids.filter((id) => all[0]!.isSampled(id)).map((id) => id.replaceAll('-', ''))
    for (const traces of all) for (const id of ids) record(traces, id)
    await Promise.all(all.map((traces) => traces!.close()))
    assert.ok(sampled.length > 20 && sampled.length < 80, String(sampled.length))
    const found = collector.spans.map(({ traceId }) => traceId)
    assert.deepEqual(found.sort(), [...sampled, ...sampled].sort())
  })

  it('do not hold up or end a process whose collector is away, which logs it', async () => {
    const traces = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await quietPort()}`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    })
    for (let i = 0; i < 5_000; i++) record(traces)
    await traces!.close()
    assert.match(lines.join(''), /spans could not be exported/)
  })

  it('refuse wrong settings by name', () => {
    const refused = (env: Record<string, string>, message: RegExp) =>
      assert.throws(() => readVariables(sharedVariables, { ...SHARED, ...env }), {
        name: 'ConfigError',
        message,
      })
    refused({ OTEL_TRACES_EXPORTER: 'zipkin' }, /^OTEL_TRACES_EXPORTER must be one of otlp, none$/)
    refused(
      { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      /^OTEL_EXPORTER_OTLP_PROTOCOL must be one of http\/protobuf, http\/json$/,
    )
    refused({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }, /^OTEL_EXPORTER_OTLP_ENDPOINT must be a URL/)
    refused({ OTEL_TRACES_SAMPLER_ARG: '2' }, /^OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1$/)
  })

  it('leave out what a savepoint has rolled back', () => {
    const spans = new PendingSpans({ traceId: randomUUID() })
    const add = (name: string) =>
      spans.add({ name, kind: 'internal', id: newSpanId(), start: 0, end: 0, attributes: {} })
    add('kept')
    const before = spans.length
    add('undone')
    spans.truncate(before)
    assert.deepEqual(
      [...spans].map(({ name }) => name),
      ['kept'],
    )
  })
})
