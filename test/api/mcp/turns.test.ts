import assert from 'node:assert/strict'
import { startApi, type TestApi } from '../../support/api.ts'
import { countingTurns } from '../../support/count-turns.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { rawMcp } from '../../support/mcp.ts'

const CALLS = 6

describe('tool calls that come together', () => {
  let db: TestDatabase
  let api: TestApi
  /** Gets the text of each log line. */
  let onLine = (_msg: string) => {}
  let isTogether = false
  let waiting: (() => void)[] = []
  before(async () => {
    db = await createTestDatabase()
    /** Gives the results of all calls at once. */
    const tenant: TestDatabase['tenant'] = async (...parameters) => {
      const result = await db.tenant(...parameters)
      if (!isTogether) return result
      await new Promise<void>((resolve) => {
        waiting.push(resolve)
        if (waiting.length < CALLS) return
        for (const go of waiting) go()
        waiting = []
      })
      return result
    }
    api = await startApi({ ...db, tenant }, {}, { write: (line) => onLine(JSON.parse(line).msg) })
  })
  after(async () => {
    await api.close()
    await db.drop()
  })

  it('are answered one in each turn of the event loop', async () => {
    const { headers, body } = rawMcp('tools/call', {
      name: 'search_records',
      arguments: { kind: 'contacts' },
    })
    const call = () => api.request('POST', '/mcp', { headers, body })
    isTogether = true
    // The first ones open the connections.
    for (const _ of [1, 2]) {
      const turns: Record<string, number[]> = {}
      await countingTurns(async (turn) => {
        onLine = (msg) => {
          turns[msg] = [...(turns[msg] ?? []), turn()]
        }
        const answers = await Promise.all(Array.from({ length: CALLS }, call))
        for (const { status } of answers) assert.equal(status, 200)
      })
      assert.equal(turns['tool call']?.length, CALLS)
      assert.equal(new Set(turns['tool call']).size, 1, 'their results come in one turn')
      assert.equal(new Set(turns.request).size, CALLS, `answered in the turns ${turns.request}`)
    }
  })

  it('begin one in each turn', async () => {
    isTogether = false
    // It needs no result of the database.
    const { headers, body } = rawMcp('tools/call', { name: 'describe_records', arguments: {} })
    for (const _ of [1, 2]) {
      const answered: number[] = []
      await countingTurns(async (turn) => {
        onLine = (msg) => void (msg === 'request' && answered.push(turn()))
        const calls = Array.from({ length: CALLS }, () => api.request('POST', '/mcp', { headers, body }))
        for (const { status } of await Promise.all(calls)) assert.equal(status, 200)
      })
      assert.equal(new Set(answered).size, CALLS, `answered in the turns ${answered}`)
    }
  })
})
