import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { batchRoutes } from '../../../api/v1/batch.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { settleEach } from '../../../db/records/sets.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { countingTurns } from '../../support/count-turns.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const BATCHES = 6
const LONG = 40

/** Asserts that no turn has steps of two batches. */
function requireApart(steps: { batch: number; turn: number }[]): void {
  const batchOf = new Map<number, number>()
  for (const { batch, turn } of steps) {
    assert.equal(batchOf.get(turn) ?? batch, batch, `turn ${turn} has steps of two batches`)
    batchOf.set(turn, batch)
  }
}

const together = <T>(work: (batch: number) => Promise<T>) =>
  Promise.all(Array.from({ length: BATCHES }, (_, batch) => work(batch)))

describe('batches that come together', () => {
  it('are checked one in each turn of the event loop', async () => {
    const { checkBody } = batchRoutes.find(({ id }) => id === 'batchNotes')!
    const steps: { batch: number; turn: number }[] = []
    await countingTurns((turn) =>
      together((batch) => {
        const operation = {
          get op() {
            steps.push({ batch, turn: turn() })
            return 'create'
          },
          data: { body: 'A note' },
        }
        return checkBody!({ operations: Array(LONG).fill(operation) }, randomUUID())
      }),
    )
    assert.ok(steps.length >= BATCHES * LONG)
    requireApart(steps)
  })

  it('are prepared one in each turn', async () => {
    const steps: { batch: number; turn: number }[] = []
    await countingTurns((turn) =>
      together((batch) => {
        const tx: Pick<Tenant, 'organizationId'> = { organizationId: randomUUID() }
        return settleEach(tx, Array(LONG).fill(batch), (batch) => steps.push({ batch, turn: turn() }))
      }),
    )
    assert.equal(steps.length, BATCHES * LONG)
    requireApart(steps)
  })

  describe('as requests', () => {
    let db: TestDatabase
    let api: TestApi
    /** Gets each log line about a request. */
    let onAnswer = (_route: string) => {}
    before(async () => {
      db = await createTestDatabase()
      const write = (line: string) => {
        const { msg, route } = JSON.parse(line)
        if (msg === 'request') onAnswer(route)
      }
      api = await startApi(db, {}, { write })
    })
    after(async () => {
      await api.close()
      await db.drop()
    })

    it('are answered one in each turn', async () => {
      // They need no statement, so that they are answered as soon as they are checked.
      const body = { operations: Array(LONG).fill({ op: 'create', data: { nothing: 1 } }) }
      // The first ones open the connections.
      for (const _ of [1, 2]) {
        const answered: number[] = []
        await countingTurns(async (turn) => {
          onAnswer = () => answered.push(turn())
          const answers = await together(() => api.request('POST', '/v1/objects/notes/batch', { body }))
          for (const answer of answers) assert.equal(answer.body.failed, LONG)
        })
        assert.equal(answered.length, BATCHES)
        assert.equal(new Set(answered).size, BATCHES, `answered in the turns ${answered}`)
      }
    })

    it('have the issues of their operations where a short one has them', async () => {
      const wrong = { op: 'create', data: { body: 'A note', nothing: 1 } }
      const send = async (count: number) => {
        const operations = [...Array(count).fill({ op: 'create', data: { body: 'A note' } }), wrong]
        const { body } = await api.request('POST', '/v1/objects/notes/batch', { body: { operations } })
        return body.results[count].detail
      }
      const [short, long] = [await send(1), await send(LONG)]
      assert.deepEqual(short[0].loc, ['body', 'operations', 1, 'data', 'nothing'])
      assert.deepEqual(
        long,
        short.map((issue: { loc: unknown[] }) => ({
          ...issue,
          loc: ['body', 'operations', LONG, ...issue.loc.slice(3)],
        })),
      )
    })

    it('are refused as by their schema', async () => {
      const refused = await api.request('POST', '/v1/objects/notes/batch', {
        body: { operations: [], atomc: true },
      })
      assert.equal(refused.status, 422)
      const hints = Object.fromEntries(
        refused.body.detail.map((issue: { loc: string[]; hint?: string }) => [
          issue.loc.join('.'),
          issue.hint,
        ]),
      )
      assert.deepEqual(hints, { 'body.operations': undefined, 'body.atomc': 'did you mean atomic?' })
    })
  })
})
