import type { Parameter } from '../http/openapi-parameters.ts'

export const MCP_PATH = '/mcp'

const REVISION = '2026-07-28'

const header = (name: string, description: string, schema: object): Parameter =>
  ({ name, in: 'header', required: false, description, schema }) as unknown as Parameter

const HEADERS = { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } }

const message = (description: string, example: object) => ({
  description,
  headers: HEADERS,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/McpMessage' }, example } },
})

const refusal = (description: string, code: number, text: string) =>
  message(description, { jsonrpc: '2.0', id: null, error: { code, message: text } })

export const mcpShapes = {
  McpMessage: {
    type: 'object',
    description: 'A message of JSON-RPC 2.0, as the Model Context Protocol defines it.',
    required: ['jsonrpc'],
    properties: {
      jsonrpc: { type: 'string', const: '2.0' },
      id: { type: ['string', 'integer', 'null'] },
      method: { type: 'string' },
      params: { type: 'object', additionalProperties: true },
      result: { type: 'object', additionalProperties: true },
      error: { type: 'object', additionalProperties: true },
    },
  },
}

/** The operation of the Model Context Protocol: outside of the route tables, because its tools call those. */
export const mcpOperation = {
  operationId: 'callMcp',
  tags: ['Agents'],
  summary: 'Send a message of the Model Context Protocol',
  description: `Streamable HTTP without sessions: revision ${REVISION}, and clients of 2025-11-25 and 2025-06-18. Agents connect to it with an MCP client, with a key or by [OAuth](/docs/agents). The tools call the operations of \`/v1\` with the same key, scopes, limits, validation and errors; a refusal of \`/v1\` is the result of the tool, with \`isError\`.`,
  security: [{ apiKey: [] }],
  parameters: [
    header('MCP-Protocol-Version', 'The revision of the protocol.', { type: 'string', examples: [REVISION] }),
    header('Mcp-Method', 'The method of the message.', { type: 'string', examples: ['tools/list'] }),
    header('Mcp-Name', 'The tool that is called.', { type: 'string', examples: ['search_records'] }),
  ],
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/McpMessage' },
        'x-max-bytes': 1_048_576,
        example: {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/list',
          params: {
            _meta: {
              'io.modelcontextprotocol/protocolVersion': REVISION,
              'io.modelcontextprotocol/clientInfo': { name: 'example', version: '1' },
              'io.modelcontextprotocol/clientCapabilities': {},
            },
          },
        },
      },
    },
  },
  responses: {
    '200': {
      description: 'The result, or an error of the protocol. Clients before 2026-07-28 get it as an event.',
      headers: HEADERS,
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/McpMessage' },
          example: { jsonrpc: '2.0', id: 1, result: { resultType: 'complete', tools: [] } },
        },
        'text/event-stream': {
          schema: { type: 'string' },
          example: 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n\n',
        },
      },
    },
    '202': { description: 'A notification was accepted.', headers: HEADERS, content: {} },
    '400': refusal('The message is invalid.', -32600, 'batches are not supported'),
    '401': refusal('The key is missing or invalid.', -32000, 'missing or invalid API key'),
    '403': refusal(
      'Pages of this origin may not use the service.',
      -32000,
      'requests of pages of this origin are not accepted',
    ),
    '404': refusal('The method does not exist.', -32601, 'Method not found'),
    '406': refusal('Accept lacks application/json or text/event-stream.', -32000, 'Not Acceptable'),
    '413': refusal('The body is too large.', -32000, 'the body is larger than 1,048,576 bytes'),
    '415': refusal('The body is not JSON.', -32000, 'the body must be JSON'),
    '429': refusal(
      'The rate limit is exceeded. Retry after Retry-After.',
      -32000,
      'the key exceeds 6000 requests per minute',
    ),
    '500': refusal('An unexpected error of the service.', -32603, 'internal error'),
    '503': refusal(
      'The service is busy or starting. Retry after Retry-After.',
      -32000,
      'the service is busy or starting: try again',
    ),
  },
}
