import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { Sweep } from '../../worker/sweep.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { forgetRun } from '../support/forget-run.ts'
import { httpResponse } from '../support/http-response.ts'
import { delay, edge } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { nodeStatuses, queueRun, startWorker, type TestWorker, testLog, untilRun } from '../support/worker.ts'

const save = (id: string) => ({
  id,
  type: 'crm_manager',
  config: { operation: 'create', entity: 'contacts', fields: { first_name: '{{ run.id }}' } },
})
const call = { id: 'call', type: 'api_request', config: { url: 'https://example.com/' } }

describe('runs that Temporal or PostgreSQL has forgotten', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let calls = 0
  let held: Promise<void> = Promise.resolve()

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await startWorker(db, {
      http: async () => {
        calls += 1
        await held
        return httpResponse()
      },
    })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })
  beforeEach(() => {
    calls = 0
    held = Promise.resolve()
  })

  const run = (id: string) => db.system('runs').where({ id }).first()
  const workflow = (id: string) => worker.client.workflow.getHandle(`run:${id}`)
  const contacts = async (id: string) => (await db.system('contacts').where({ first_name: id })).length
  const nodes = (id: string) => nodeStatuses(db, id)
  const sweep = () =>
    new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog }).once('0 seconds')

  const forget = (id: string) => forgetRun(worker.client, id)

  const TABLES = ['runs', 'run_nodes', 'run_segments'] as const
  /** @returns a function that restores the current rows of a run, as a restored backup does. */
  async function backup(id: string): Promise<() => Promise<void>> {
    const rows = await Promise.all(
      TABLES.map((table) =>
        db.asOwner((owner) =>
          owner.query(
            `select coalesce(jsonb_agg(t), '[]') as rows from ${table} t where ${table === 'runs' ? 'id' : 'run_id'} = $1`,
            [id],
          ),
        ),
      ),
    )
    return () =>
      db.asOwner(async (owner) => {
        await owner.query('begin')
        await owner.query('delete from runs where id = $1', [id])
        for (const [i, table] of TABLES.entries()) {
          const columns = `(select string_agg(quote_ident(attname), ', ') from pg_attribute where attrelid = '${table}'::regclass
            and attnum > 0 and not attisdropped and attgenerated = '')`
          const names = (await owner.query(`select ${columns} as names`)).rows[0].names
          await owner.query(
            `insert into ${table} (${names}) select ${names} from jsonb_populate_recordset(null::${table}, $1)`,
            [JSON.stringify(rows[i]!.rows[0].rows)],
          )
        }
        await owner.query('commit')
      })
  }

  it('continue where they were if Temporal has lost them', async () => {
    let release = () => {}
    held = new Promise<void>((resolve) => {
      release = resolve
    })
    const id = await queueRun(db, organizationId, {
      nodes: [save('save'), delay('pause', '3s'), call, save('end')],
      edges: [edge('save', 'pause'), edge('save', 'call'), edge('pause', 'end'), edge('call', 'end')],
      settings: { timeout: '1h' },
    })
    await until(async () => calls === 1)
    await forget(id)
    held = Promise.resolve()
    await sweep()
    const ended = await untilRun(db, id)
    release()
    assert.deepEqual([ended.status, ended.error], ['completed', null])
    assert.deepEqual([await contacts(id), calls, (await run(id)).resumes], [2, 2, 1])
    assert.equal((await workflow(id).describe()).runId, (await run(id)).temporal_run_id)
  })

  it('are looked up soon if they sleep and must be told something', async () => {
    const asleep = await queueRun(db, organizationId, { nodes: [delay('pause', '30d')] })
    const hold = { id: 'hold', type: 'wait_for_signal', config: { name: 'go' } }
    const waiting = await queueRun(db, organizationId, { nodes: [hold] })
    await until(async () => (await nodes(asleep)).pause === 'waiting')
    await until(async () => (await nodes(waiting)).hold === 'waiting')
    for (const id of [asleep, waiting]) await forget(id)
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, asleep))
    await db.tenant(organizationId, testActor, (tx) => sendSignal(tx, waiting, { name: 'go', payload: 1 }))
    // Longer than the relay needs to signal Temporal; sleeping runs are checked after 720 times as long.
    await pause(1_500)
    await new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog }).once('1 second')
    assert.deepEqual(
      [(await untilRun(db, asleep)).status, (await untilRun(db, waiting)).status],
      ['cancelled', 'completed'],
    )
  })

  it('start from the beginning if nothing of them is recorded, and are cancelled if that was requested', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('pause', '1h')] })
    await until(async () => (await nodes(id)).pause === 'waiting')
    await forget(id)
    await db
      .system('runs')
      .where({ id })
      .update({ cancel_requested_at: new Date(), cancel_sent_at: new Date() })
    await sweep()
    assert.equal((await untilRun(db, id)).status, 'cancelled')

    const unrecorded = await queueRun(db, await createOrganization(db, { limits: { max_running: 0 } }), {
      nodes: [save('save')],
    })
    await db.system('runs').where({ id: unrecorded }).update({ status: 'running' })
    await sweep()
    const { organization_id } = await run(unrecorded)
    await db.system('organizations').where({ id: organization_id }).update({ limits: '{}' })
    assert.equal((await untilRun(db, unrecorded)).status, 'completed')
  })

  it('are lost if Temporal loses them again and again', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('pause', '1h')] })
    await until(async () => (await nodes(id)).pause === 'waiting')
    await forget(id)
    await db.system('runs').where({ id }).update({ resumes: 10 })
    await sweep()
    assert.equal((await untilRun(db, id)).status, 'lost')
  })

  it('go on if the database is restored to a moment before their last segments', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [delay('first', '400ms'), save('save'), delay('second', '4s')],
      edges: [edge('first', 'save'), edge('save', 'second')],
    })
    await until(async () => (await nodes(id)).first === 'waiting')
    const restore = await backup(id)
    await until(async () => (await nodes(id)).second === 'waiting')
    await restore()
    await db.system('contacts').where({ first_name: id }).delete()
    await new Promise((resolve) => setTimeout(resolve, 500))
    await db
      .system('run_nodes')
      .where({ run_id: id })
      .update({ wait_until: new Date(Date.now() - 60_000) })
    await sweep()
    const ended = await untilRun(db, id)
    assert.deepEqual([ended.status, await contacts(id)], ['completed', 1])
  })

  it('go on if their workflow has completed since the moment that the database was restored to', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [delay('first', '400ms'), save('save')],
      edges: [edge('first', 'save')],
    })
    await until(async () => (await nodes(id)).first === 'waiting')
    const restore = await backup(id)
    await untilRun(db, id)
    await workflow(id).result()
    await restore()
    await db.system('contacts').where({ first_name: id }).delete()
    await sweep()
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.equal(await contacts(id), 1)
  })

  it('start at once if they are queued in a restored database, and Temporal has them as closed', async () => {
    const other = await createOrganization(db, { limits: { max_running: 0 } })
    const id = await queueRun(db, other, { nodes: [save('save')] })
    const restore = await backup(id)
    await db.system('organizations').where({ id: other }).update({ limits: '{}' })
    await untilRun(db, id)
    await workflow(id).result()
    await db.system('contacts').where({ first_name: id }).delete()
    // The relay records the first start a moment later.
    await until(async () => (await db.system('run_claims').where({ run_id: id })).length === 0)
    await restore()
    assert.equal((await untilRun(db, id, ['completed'])).status, 'completed')
    assert.deepEqual([await contacts(id), (await run(id)).resumes], [1, 1])
  })

  it('end as terminated, with the reason, if a restored database does not know them', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('pause', '1s')] })
    await until(async () => (await nodes(id)).pause === 'waiting')
    await db.system('runs').where({ id }).delete()
    const { cause } = await workflow(id)
      .result()
      .then(assert.fail, (error) => error)
    assert.match(cause.message, /does not know this run/)
  })

  it('are cancelled although their workflow was resumed', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('pause', '1h')] })
    await until(async () => (await nodes(id)).pause === 'waiting')
    const before = (await run(id)).temporal_run_id
    await forget(id)
    await sweep()
    await until(
      async () => (await run(id)).status === 'running' && (await run(id)).temporal_run_id !== before,
    )
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal((await untilRun(db, id)).status, 'cancelled')
  })
})
