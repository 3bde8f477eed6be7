import type { Actor } from '../../db/model/actor.ts'
import { connect } from '../../db/postgres/connect.ts'
import { CHAIN_START, createRunIfCurrent } from '../../db/runs/runs.ts'
import { findByName } from '../../db/workflows/workflows.ts'
import { startWorker } from '../support/worker.ts'
import { startFloor } from './floor-temporal.ts'
import { recording, replay, type Statement } from './recording.ts'

/**
 * The floor of the run bench, in a separate process: a hand-written workflow with one local activity, on the same
 * PostgreSQL and Temporal, started eagerly by the process that executes it. Arguments: database, Temporal,
 * organization, workflow, contact.
 *
 * For each run it does the same durable work: it sends the SQL that the measured stack sends with warm caches, from the
 * insertion of the run's row to its end with nodes, events and answer, and its client waits for the result. It commits
 * once, and its client gets the end from Temporal.
 *
 * It does not: serve HTTP, authenticate or limit callers; commit the run before its start, so that it survives a crash
 * in between (a second commit, a notification, a claim); match events with triggers and endpoints; give workflows
 * search attributes, memos and titles; render, validate or decide anything (its statements are recorded).
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
const { client, taskQueue } = worker
const { id, name, version } = await db.tenant(organizationId!, actor, (tx) => findByName(tx, 'Bench'))
const runOnce = async () => {
  const run = await recorded.tenant(organizationId!, actor, async (tx) => {
    const runId = await createRunIfCurrent(
      tx,
      {
        workflow: { id, name, version },
        trigger: { type: 'api' },
        inputs: { contact_id: contactId },
        chain: CHAIN_START,
      },
      true,
    )
    if (runId === undefined) throw new Error('the workflow has changed')
    // Claimed and started here: otherwise the relay of the measured stack would claim it, and nothing would be recorded.
    const kept = statements.length
    const claim = { organization_id: organizationId, run_id: runId, relay_id: runId, retry_at: LEASED }
    await tx.trx('run_claims').insert(claim)
    statements.length = kept
    return runId
  })
  const input = { engine: 1, organization_id: organizationId, run_id: run, starts_with: 'Bench' }
  await client.workflow.execute('run', { taskQueue, workflowId: `run:${run}`, args: [input] })
}
// The first run fills the caches, as those of the measured stack are.
await runOnce()
statements.length = 0
await runOnce()
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
process.send?.({ statements: statements.length, taskQueue: floor.taskQueue })
