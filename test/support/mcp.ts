import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
export type Json = Record<string, any>

/** The generations of the protocol: without sessions since 2026-07-28, with `initialize` before. */
export type Era = '2026-07-28' | '2025-11-25'

export interface McpOptions {
  era?: Era
  key: string
  /** Answers the questions of the service, as a person would; without it the client cannot ask. */
  answer?: (message: string) => { action: 'accept' | 'decline'; confirm?: boolean }
  fetch?: typeof fetch
}

/** A connected client of the official SDK. */
export async function connectMcp(
  url: string,
  { era = '2026-07-28', key, answer, fetch }: McpOptions,
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      capabilities: answer ? { elicitation: { form: {} } } : {},
      versionNegotiation: { mode: era === '2026-07-28' ? { pin: era } : 'legacy' },
    },
  )
  if (answer)
    client.setRequestHandler('elicitation/create', ({ params }) => {
      const { action, confirm } = answer(params.message)
      return { action, ...(confirm !== undefined && { content: { confirm } }) }
    })
  await client.connect(
    new StreamableHTTPClientTransport(new URL('/mcp', url), {
      requestInit: { headers: { Authorization: `Bearer ${key}` } },
      ...(fetch && { fetch }),
    }),
  )
  return client
}

/** The parameters that each request of 2026-07-28 carries. */
const envelope = (capabilities: object, version = '2026-07-28') => ({
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
})

/** A request of 2026-07-28 as it is on the wire, for what the official client would not send. */
export function rawMcp(
  method: string,
  params: Record<string, unknown> = {},
  { capabilities = {}, version }: { capabilities?: object; version?: string } = {},
) {
  const { name } = params
  return {
    headers: {
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': version ?? '2026-07-28',
      'Mcp-Method': method,
      ...(typeof name === 'string' && { 'Mcp-Name': name }),
    },
    body: { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: envelope(capabilities, version) } },
  }
}
