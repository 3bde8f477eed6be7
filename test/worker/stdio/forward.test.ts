import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { forwardLines } from '../../../worker/stdio/forward.ts'
import { withApi } from '../../support/with-api.ts'

const COMMAND = fileURLToPath(new URL('../../../worker/commands/mcp.ts', import.meta.url))

describe('the tools of a running agx over stdio', function () {
  this.timeout(60_000)
  const suite = withApi()
  const argumentsOf = (url: string) => ['--import', 'tsx', COMMAND, `--url=${url}`]

  for (const mode of ['legacy', 'auto'] as const)
    it(`are used by the client of the official SDK (${mode})`, async () => {
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
      await client.connect(
        new StdioClientTransport({
          command: process.execPath,
          args: argumentsOf(suite.api.url),
          env: { ...process.env, AGX_KEY: suite.api.key } as Record<string, string>,
        }),
      )
      try {
        equal((await client.listTools()).tools.length, 20)
        const given = { kind: 'tasks', fields: { title: `Call Ada, Zürich (${mode})` } }
        const { structuredContent } = await client.callTool({ name: 'create_record', arguments: given })
        equal((structuredContent as { title: string }).title, given.fields.title)
        const { contents } = await client.readResource({ uri: 'agx://schemas/tasks' })
        ok(contents.length > 0)
      } finally {
        await client.close()
      }
    })

  /** The answers to these lines. */
  async function answersTo(lines: string[], endpoint: { url: string; key: string }) {
    const written: string[] = []
    await forwardLines(
      (async function* () {
        yield* lines
      })(),
      (line) => written.push(line),
      endpoint,
    )
    return written.map((line) => JSON.parse(line))
  }
  const LIST = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list', params: {} })

  it('answer what cannot be forwarded with an error of the protocol', async () => {
    const endpoint = { url: `${suite.api.url}/mcp`, key: suite.api.key }
    const [broken] = await answersTo(['{', '', '[]'], endpoint)
    deepEqual([broken.id, broken.error.code], [null, -32700])
    const [refused] = await answersTo([LIST], { ...endpoint, key: 'agx_wrong' })
    deepEqual([refused.id, refused.error.message], [7, 'missing or invalid API key'])
    // Nobody listens there, and it is none of the ports that fetch refuses itself.
    const [away] = await answersTo([LIST], { ...endpoint, url: 'http://127.0.0.1:4/mcp' })
    equal(away.id, 7)
    match(away.error.message, /cannot be reached at http:\/\/127\.0\.0\.1:4\/mcp: ECONNREFUSED/)
  })

  it('need a URL and a key', async () => {
    const { AGX_KEY: _, ...env } = process.env
    const child = spawn(process.execPath, argumentsOf('http://127.0.0.1:1'), { env })
    let said = ''
    child.stderr.on('data', (chunk) => {
      said += chunk
    })
    const [code] = await once(child, 'exit')
    equal(code, 1)
    match(said, /usage: AGX_KEY=/)
  })
})
