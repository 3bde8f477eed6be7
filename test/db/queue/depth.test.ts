import assert from 'node:assert/strict'
import { v7 as uuidv7 } from 'uuid'
import { listJobs, listQueues } from '../../../db/queue/depth.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { set } from '../../support/nodes.ts'
import { INCOMING_ROW, OUTGOING_ROW } from '../../support/webhook-rows.ts'
import { queueRun } from '../../support/worker.ts'

const HOUR = 3_600
const EMPTY = JSON.stringify({})
const BY = JSON.stringify({ type: 'system', id: null })

describe('the depth of the queues', () => {
  let db: TestDatabase
  let organizationId: string
  beforeEach(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  afterEach(() => db?.drop())

  const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000)
  const measured = async (queue: string, status: string) => {
    const found = (await listQueues(db.system)).find((one) => one.queue === queue && one.status === status)
    assert.ok(found, `${queue} ${status}`)
    return found
  }
  /** Between `seconds` and a minute more: the test itself takes some. */
  const assertAge = (age: number | null, seconds: number) =>
    assert.ok(age !== null && age >= seconds - 1 && age < seconds + 60, `${age} instead of ${seconds} s`)
  const queued = () => queueRun(db, organizationId, { nodes: [set('a')] })
  const insert = async (table: string, values: object): Promise<string> => {
    const id = uuidv7()
    await db.system(table).insert({ organization_id: organizationId, id, ...values })
    return id
  }
  const incomingWebhook = (values: object) =>
    insert('incoming_webhooks', { name: 'Source', ...INCOMING_ROW, ...values })

  it('has runs that settings of their workflow hold back apart: nobody can start them earlier', async () => {
    const [held, waiting] = [await queued(), await queued()]
    const values = (seconds: number) => ({ created_at: ago(seconds), updated_at: ago(seconds) })
    await db
      .system('runs')
      .where({ id: held })
      .update({ ...values(HOUR), hold: 'rate', hold_until: ago(-HOUR) })
    await db.system('runs').where({ id: waiting }).update(values(90))
    const { count, lag_seconds } = await measured('runs', 'queued')
    assert.equal(count, 1)
    assertAge(lag_seconds, 90)
    assert.deepEqual(await measured('runs', 'held'), {
      queue: 'runs',
      status: 'held',
      count: 1,
      lag_seconds: null,
    })
  })

  it('measures a run and an import since they were queued: a resumed one is older', async () => {
    await db
      .system('runs')
      .where({ id: await queued() })
      .update({ created_at: ago(24 * HOUR), updated_at: ago(5) })
    const file = { created_by: BY, created_at: ago(24 * HOUR), updated_at: ago(10) }
    await insert('imports', { entity: 'contacts', mode: 'create', dry_run: false, status: 'queued', ...file })
    assertAge((await measured('runs', 'queued')).lag_seconds, 5)
    assertAge((await measured('imports', 'queued')).lag_seconds, 10)
  })

  it('has the embeddings of collections, and the sources that are due', async () => {
    const id = await insert('knowledge_collections', {
      name: 'Handbook',
      language: 'english',
      created_by: BY,
      updated_by: BY,
    })
    await db.system('knowledge_embeddings').insert({
      organization_id: organizationId,
      id,
      base_url: 'https://example.com',
      model: 'small',
      status: 'queued',
      created_at: ago(HOUR),
      updated_at: ago(40),
    })
    const { count, lag_seconds } = await measured('knowledge_embeddings', 'queued')
    assert.equal(count, 1)
    assertAge(lag_seconds, 40)

    await incomingWebhook({ next_poll_at: ago(70) })
    await incomingWebhook({ next_poll_at: ago(-HOUR) })
    await incomingWebhook({ next_poll_at: ago(HOUR), status: 'Inactive' })
    await incomingWebhook({ next_poll_at: ago(HOUR), poll_lease_until: ago(-10) })
    const polls = await measured('incoming_polls', 'queued')
    assert.equal(polls.count, 2, 'the one that is due, and the one that is polled')
    assertAge(polls.lag_seconds, 70)
  })

  it('has the open long jobs of each sort, and the age of the oldest', async () => {
    const incoming = await incomingWebhook({})
    const outgoing = await insert('outgoing_webhooks', { name: 'Receiver', ...OUTGOING_ROW })
    const replay = { include: ['failed'], total: 1, created_by: BY }
    const period = { since: ago(HOUR), until: ago(0) }
    const jobs: Record<string, object> = {
      bulk_jobs: { entity: 'contacts', action: 'delete', listing: true, created_by: BY },
      erasures: {
        contact_id: uuidv7(),
        by_name: false,
        erased: EMPTY,
        to_review: '[]',
        review_count: 0,
        created_by: BY,
      },
      run_batches: { action: 'cancel', filter: EMPTY, options: EMPTY, total: 0, created_by: BY },
      incoming_replays: { webhook_id: incoming, ...replay },
      outgoing_replays: { webhook_id: outgoing, ...period, ...replay },
    }
    assert.deepEqual(
      (await listJobs(db.system)).map(({ count, oldest_seconds }) => [count, oldest_seconds]),
      Object.keys(jobs).map(() => [0, null]),
    )
    for (const [table, values] of Object.entries(jobs)) {
      for (const age of [HOUR, 60]) await insert(table, { ...values, created_at: ago(age) })
      const ended = { created_at: ago(2 * HOUR), ended_at: ago(HOUR) }
      await insert(table, {
        ...values,
        ...ended,
        ...(table.endsWith('_replays') && { status: 'completed' }),
      })
    }
    const found = await listJobs(db.system)
    assert.deepEqual(found.map(({ queue }) => queue).sort(), Object.keys(jobs).sort())
    for (const { queue, count, oldest_seconds } of found) {
      assert.equal(count, 2, queue)
      assertAge(oldest_seconds, HOUR)
    }
  })
})
