import assert from 'node:assert/strict'
import { connectMcp } from '../../support/mcp.ts'
import { withApi } from '../../support/with-api.ts'

describe('the Model Context Protocol', () => {
  const suite = withApi()

  for (const era of ['2026-07-28', '2025-11-25'] as const)
    it(`writes and finds a record, with a client of ${era}`, async () => {
      const client = await connectMcp(suite.api.url, { era, key: suite.api.key })
      const created = await client.callTool({
        name: 'create_record',
        arguments: { kind: 'contacts', fields: { first_name: 'Ada', email: `ada-${era}@example.com` } },
      })
      assert.equal(created.isError, undefined, JSON.stringify(created))
      console.log(JSON.stringify(created))
      const { tools } = await client.listTools()
      const size = JSON.stringify(tools).length
      console.log(size, tools.map((t) => `${t.name} ${JSON.stringify(t).length}`).join('\n'))
      await client.close()
    })
})
