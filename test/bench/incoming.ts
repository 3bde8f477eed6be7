import { mapPayload } from '../../db/model/incoming/mapping/map.ts'
import { connect, type Database } from '../../db/postgres/connect.ts'
import type { TestStack } from '../support/stack.ts'
import { startChild } from './child.ts'
import { payload } from './incoming-payload.ts'
import { inTurns, print, printPairs } from './report.ts'
import { liftLimits, ownerSession } from './setup.ts'
import { socketLoad } from './socket-load.ts'
import { CpuMeter, stackCpu } from './stack-cpu.ts'

const ROUNDS = 3
const MAPPINGS = 5_000

/**
 * Requests with a payload of 20 fields, each of which creates a contact with its log row, compared with a bare Koa
 * handler that parses the same body and executes the same inserts. Then verifies that no accepted request was lost.
 * Options: `--seconds=`, `--clients=`.
 */
export async function benchIncoming(stack: TestStack, seconds: number, clients: number): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  const organizationId = await liftLimits(db)
  const post = await ownerSession(stack)
  const settings = { name: 'Bench', rate_limit: 100_000 }
  const webhook = await post<{ id: string; secret: string }>('/webhooks/incoming', settings)
  const floor = await startChild('./floor-incoming.ts', [stack.databaseUrl, organizationId, webhook.id])
  const headers = { 'content-type': 'application/json', 'x-webhook-secret': webhook.secret }
  const path = `/webhooks/incoming/${webhook.id}`
  const shot = () => ({ path, method: 'POST' as const, headers, body: JSON.stringify(payload()) })
  let accepted = 0
  const cpu = new CpuMeter(() => stackCpu(stack))
  const before = await logged(db, webhook.id)
  const ours = async (time = seconds) => {
    const result = await cpu.of(() => socketLoad(stack.apiUrl, clients, time, shot))
    accepted += result.requests - result.refused
    return result
  }
  const bare = (time = seconds) => socketLoad(`http://127.0.0.1:${floor.ready.port}`, clients, time, shot)
  const warm = await bare(1)
  let floors = warm.requests - warm.refused
  await ours(1)
  printPairs(
    `incoming, ${clients} clients`,
    await inTurns(ROUNDS, ours, async () => {
      const result = await bare()
      floors += result.requests - result.refused
      return result
    }),
  )
  const rows = (await logged(db, webhook.id)) - before - floors
  print(`accepted ${accepted}, logged with a record ${rows}, lost ${accepted - rows}`)
  print(`CPU for a request: ${cpu}`)
  print(`mapping alone: ${mappingMs().toFixed(3)} ms for the payload of 20 fields`)
  await floor.close()
  await db.close()
}

const logged = async (db: Database, webhookId: string): Promise<number> =>
  Number(
    (await db
      .system('incoming_logs')
      .where({ webhook_id: webhookId, status: 'Success' })
      .whereNotNull('record_id')
      .count<{ count: string }>({ count: '*' })
      .first())!.count,
  )

function mappingMs(): number {
  const settings = { field_mapping: { mode: 'automatic' }, kind: 'contacts' } as const
  const body = payload()
  for (let n = 0; n < MAPPINGS; n++) mapPayload(body, settings)
  const started = performance.now()
  for (let n = 0; n < MAPPINGS; n++) mapPayload(body, settings)
  return (performance.now() - started) / MAPPINGS
}
