/**
 * Forwards the messages of an MCP client that speaks over stdio to `/mcp` of a running agx, line by line. It holds no
 * state but the version that `initialize` has agreed on, so that a restart loses nothing.
 */

interface Message {
  jsonrpc?: unknown
  id?: string | number | null
  method?: string
  params?: { [name: string]: unknown; _meta?: Record<string, unknown>; requestId?: string | number }
  result?: { protocolVersion?: unknown }
}

export interface Endpoint {
  /** The URL of `/mcp`. */
  url: string
  key: string
}

const VERSION_META = 'io.modelcontextprotocol/protocolVersion'
/** The request parameter that the header `Mcp-Name` repeats. */
const NAMED: Record<string, string> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }

const PARSE_ERROR = -32700
const UNREACHABLE = -32000

/** Forwards lines until they end, and every answer to them. @param write gets one message without a line break. */
export async function forwardLines(
  lines: AsyncIterable<string>,
  write: (line: string) => void,
  endpoint: Endpoint,
): Promise<void> {
  const running = new Map<string | number, AbortController>()
  const open = new Set<Promise<void>>()
  let agreed: string | undefined

  const failed = (id: Message['id'], code: number, message: string) =>
    write(JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message } }))

  const forward = async (message: Message): Promise<void> => {
    const { id, method, params } = message
    // Over HTTP a request is cancelled by the end of its connection.
    if (method === 'notifications/cancelled') return running.get(params?.requestId ?? '')?.abort()
    const abort = new AbortController()
    if (id !== undefined && id !== null) running.set(id, abort)
    try {
      const response = await fetch(endpoint.url, {
        method: 'POST',
        headers: { ...headersOf(message, agreed), authorization: `Bearer ${endpoint.key}` },
        body: JSON.stringify(message),
        signal: abort.signal,
      })
      for await (const answer of messagesOf(response)) {
        if (method === 'initialize' && typeof answer.result?.protocolVersion === 'string')
          agreed = answer.result.protocolVersion
        // A refusal before the message was read names no request.
        if (id !== undefined || answer.method !== undefined)
          write(JSON.stringify(answer.id === null ? { ...answer, id } : answer))
      }
    } catch (error) {
      if (abort.signal.aborted || id === undefined) return
      const { cause, message: reason } = error as Error & { cause?: { code?: string } }
      failed(id, UNREACHABLE, `agx cannot be reached at ${endpoint.url}: ${cause?.code ?? reason}`)
    } finally {
      if (id !== undefined && id !== null) running.delete(id)
    }
  }

  for await (const line of lines) {
    if (line.trim() === '') continue
    const message = parsed(line)
    if (!message) {
      failed(null, PARSE_ERROR, 'the line is not a JSON object')
      continue
    }
    const done: Promise<void> = forward(message).finally(() => open.delete(done))
    open.add(done)
    // The messages after it have the version that it agrees on.
    if (message.method === 'initialize') await done
  }
  await Promise.all(open)
}

function headersOf({ method, params }: Message, agreed: string | undefined): Record<string, string> {
  const version = params?._meta?.[VERSION_META] ?? agreed
  const name = params?.[NAMED[method ?? ''] ?? '']
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(typeof version === 'string' && { 'mcp-protocol-version': version }),
    ...(method !== undefined && { 'mcp-method': method }),
    ...(typeof name === 'string' && { 'mcp-name': headerValue(name) }),
  }
}

/** Headers are ASCII: other text is encoded, as the protocol says. */
const headerValue = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

/** The messages of a response: one, a stream of events, or none. */
async function* messagesOf(response: Response): AsyncGenerator<Message> {
  const type = response.headers.get('content-type') ?? ''
  if (!response.body || response.status === 202) return
  if (!type.includes('text/event-stream')) {
    const message = parsed(await response.text())
    if (!message) throw new Error(`it answered ${response.status} without JSON`)
    yield message
    return
  }
  let rest = ''
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    rest += chunk
    const events = rest.split(/\r?\n\r?\n/)
    rest = events.pop()!
    for (const event of events) {
      const data = event
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n')
      const message = data === '' ? undefined : parsed(data)
      if (message) yield message
    }
  }
}

function parsed(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
