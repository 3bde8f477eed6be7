import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span as a collector gets it, in JSON. */
export interface ReceivedSpan {
  service: string
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  /** The kinds of OTLP: 1 internal, 2 server, 3 client, 4 producer. */
  kind: number
  attributes: Record<string, unknown>
  failed: boolean
}

/** A collector of OpenTelemetry: receives spans by OTLP over HTTP. */
export async function startCollector() {
  const spans: ReceivedSpan[] = []
  const requests: { type: string | undefined; path: string | undefined; body: Buffer }[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const type = request.headers['content-type']
    requests.push({ type, path: request.url, body })
    if (type === 'application/json') spans.push(...spansOf(JSON.parse(body.toString())))
    response
      .writeHead(200, { 'content-type': type ?? 'text/plain' })
      .end(type === 'application/json' ? '{}' : '')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

interface Attribute {
  key: string
  value: { stringValue?: string; intValue?: number }
}
type SentSpan = Omit<ReceivedSpan, 'attributes' | 'service'> & {
  attributes: Attribute[]
  status?: { code?: number }
}
interface Export {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: SentSpan[] }[] }[]
}

const values = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]))

const spansOf = ({ resourceSpans }: Export): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        ...span,
        service: String(values(resource.attributes)['service.name']),
        attributes: values(span.attributes),
        failed: span.status?.code === 2,
      })),
  )
