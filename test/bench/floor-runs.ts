import { connect } from '../../db/connect.ts'
import { createRun } from '../../db/runs.ts'
import type { Actor } from '../../db/tenancy.ts'
import { startWorker, untilRun } from '../support/worker.ts'
import { startFloor } from './floor-temporal.ts'
import { recording, replay, type Statement } from './recording.ts'

/**
 * The floor of the run bench, in a process of its own: a hand-written workflow with one local activity that sends the
 * SQL of one run. Arguments: database, Temporal, organization, workflow, version, contact.
 */
const [url, address, organizationId, workflowId, version, contactId] = process.argv.slice(2) as string[]
process.env.TEST_TEMPORAL_ADDRESS = address!
const db = connect({ url: url! })
const actor: Actor = { type: 'system', id: null }
const keep = new Set([organizationId!, workflowId!, contactId!])

const statements: Statement[] = []
const recorded = recording(db, statements)
const worker = await startWorker(recorded)
const workflow = { id: workflowId!, version: Number(version), name: 'Bench' }
const run = await recorded.tenant(organizationId!, actor, (tx) =>
  createRun(tx, { workflow, trigger: { type: 'api' }, inputs: { contact_id: contactId } }),
)
await untilRun(db, run)
await worker.stop()

const floor = await startFloor(address!, async () => {
  await db.tenant(organizationId!, actor, (tx) => replay(tx, statements, keep))
})
process.on('message', async ({ clients, seconds }: { clients: number; seconds: number }) => {
  process.send?.(await floor.measure(clients, seconds))
})
process.on('disconnect', () => process.exit())
process.send?.({ statements: statements.length })
