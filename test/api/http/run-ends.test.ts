import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { RunEnds } from '../../../api/http/run-ends.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const REQUESTS = 20

describe('requests that wait for the ends of runs', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('poll together, whenever each has begun', async () => {
    const { client } = db.system('runs') as unknown as { client: EventEmitter }
    let statements = 0
    const count = () => {
      statements++
    }
    client.on('query', count)
    const ends = new RunEnds(db.system)
    const organizationId = randomUUID()
    const waits: Promise<unknown>[] = []
    for (let n = 0; n < REQUESTS; n++) {
      const id = randomUUID()
      const read = () => ends.read({ organizationId, id })
      waits.push(ends.wait(id, 2_500, new AbortController().signal, read))
      await pause(20)
    }
    // Each wait polls twice, and once more at its end.
    assert.deepEqual(new Set(await Promise.all(waits)), new Set([undefined]))
    client.off('query', count)
    assert.ok(statements <= REQUESTS * 1.5, `${statements} statements`)
  })
})
