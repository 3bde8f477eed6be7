import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { handleApproval } from '../../../api/approvals/decide.ts'
import type { AppDeps } from '../../../api/deps.ts'
import { serve } from '../../../api/http/serve.ts'
import { approvalToken } from '../../../db/process/approval-links.ts'

describe('the log of approvals', () => {
  it('has the route, and never the token, also when the database fails', async () => {
    const lines: string[] = []
    const log = pino({ base: null }, { write: (line: string) => lines.push(line) })
    const secretsKey = randomBytes(32)
    const db = {
      async tenant() {
        throw new Error('the connection was lost')
      },
    }
    const deps = { secretsKey, db, log } as unknown as AppDeps
    const server = createServer(serve(log, (ctx, path) => handleApproval(ctx, path, deps)).callback())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const key = { organization_id: randomUUID(), run_id: randomUUID(), id: randomUUID() }
    const token = approvalToken(secretsKey, key)
    const { port } = server.address() as AddressInfo
    for (const path of [token, 'forged'])
      for (const body of [undefined, '{"decision": "approved"}'])
        await fetch(`http://127.0.0.1:${port}/approvals/${path}`, {
          ...(body ? { method: 'POST', body, headers: { 'Content-Type': 'application/json' } } : {}),
        })
    server.closeAllConnections()
    server.close()
    const text = lines.join('')
    assert.equal(text.match(/"msg":"request"/g)?.length, 4)
    assert.match(text, /"route":"\/approvals\/\{token\}"/)
    assert.match(text, /the connection was lost/)
    assert.ok(!text.includes(token) && !text.includes('forged'), text)
  })
})
