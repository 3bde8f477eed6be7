import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

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
