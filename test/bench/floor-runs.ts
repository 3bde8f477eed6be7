import { connect } from '../../db/postgres/connect.ts'
import type { Actor } from '../../db/postgres/tenancy.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { findByName } from '../../db/workflows/workflows.ts'
import { startWorker } from '../support/worker.ts'
import { startFloor } from './floor-temporal.ts'
import { recording, replay, type Statement } from './recording.ts'

/**
 * The floor of the run bench, in a process of its own: a hand-written workflow with one local activity that sends the
 * SQL of one run by name, from the lookup of the workflow to the end of the run; neither authentication nor the queue.
 * Arguments: database, Temporal, organization, workflow, contact.
 */
const [url, address, organizationId, workflowId, contactId] = process.argv.slice(2) as string[]
process.env.TEST_TEMPORAL_ADDRESS = address!
const db = connect({ url: url! })
const actor: Actor = { type: 'system', id: null }
const ids = new Map([organizationId!, workflowId!, contactId!].map((id) => [id, id]))

const LEASED = new Date(Date.now() + 60_000)

const statements: Statement[] = []
const recorded = recording(db, statements)
const worker = await startWorker(recorded)
const run = await recorded.tenant(organizationId!, actor, async (tx) => {
  const workflow = await findByName(tx, 'Bench')
  const id = await createRun(tx, {
    workflow,
    trigger: { type: 'api' },
    inputs: { contact_id: contactId },
    chain: CHAIN_START,
  })
  // Claimed and started here: otherwise the relay of the measured stack would claim it, and nothing would be recorded.
  const kept = statements.length
  const claim = { organization_id: organizationId, run_id: id, relay_id: id, retry_at: LEASED }
  await tx.trx('run_claims').insert(claim)
  statements.length = kept
  return id
})
const { client, taskQueue } = worker
const input = { engine: 1, organization_id: organizationId, run_id: run, starts_with: 'Bench' }
await client.workflow.execute('run', { taskQueue, workflowId: `run:${run}`, args: [input] })
await worker.stop()
recorded.stop()
if (!statements.some(({ sql }) => sql.includes('run_segments'))) throw new Error('no segment was recorded')

const floor = await startFloor(address!, async () => {
  await db.tenant(organizationId!, actor, (tx) => replay(tx, statements, { ids }))
})
process.on('message', async ({ clients, seconds }: { clients: number; seconds: number }) => {
  process.send?.(await floor.measure(clients, seconds))
})
process.on('disconnect', () => process.exit())
process.send?.({ statements: statements.length })
