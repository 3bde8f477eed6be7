import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { insertEvents } from '../../../db/events/outbox.ts'
import type { Actor } from '../../../db/model/actor.ts'
import { createSchema } from '../../../db/model/records/schemas.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { createRecord } from '../../../db/records/create.ts'
import { failRunStart } from '../../../db/runs/moves/ends.ts'
import { recordSegment } from '../../../db/runs/moves/segments.ts'
import { CHAIN_START, createRun } from '../../../db/runs/runs.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { createEmptyWorkflow } from '../../support/workflows.ts'

describe('events', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  after(() => db.drop())

  const tenant = <T>(actor: Actor, work: (tx: Tenant) => Promise<T>): Promise<T> =>
    db.tenant(organizationId, actor, work)
  const startRun = (chain = CHAIN_START): Promise<string> =>
    tenant(testActor, async (tx) => {
      const { id, version, name } = await createEmptyWorkflow(tx)
      return createRun(tx, { workflow: { id, version, name }, trigger: { type: 'api' }, inputs: {}, chain })
    })
  const origins = (where: object) =>
    db
      .system('events')
      .where({ organization_id: organizationId, ...where })
      .orderBy('id')
      .select('name', 'actor', 'cause', 'depth')
  const contact = (actor: Actor) =>
    tenant(actor, (tx) => createRecord(tx, 'contacts', createSchema('contacts').parse({ email: 'a@b.ch' })))

  it('of a client name it, and start a chain', async () => {
    const key: Actor = { type: 'key', id: randomUUID() }
    const { id } = await contact(key)
    assert.deepEqual(await origins({ subject_id: id }), [
      { name: 'contact.created', actor: key, cause: null, depth: 0 },
    ])
    await tenant(key, (tx) => insertEvents(tx, [{ name: 'invoice.paid', data: { id } }]))
    const [, paid] = await origins({ subject_id: id })
    assert.deepEqual(paid, { name: 'invoice.paid', actor: key, cause: null, depth: 0 })
  })

  it('are as old as their transaction by the clock of the database, also those of records', async () => {
    const rows = await tenant(testActor, async (tx) => {
      await setTimeout(20)
      const { id } = await createRecord(tx, 'contacts', createSchema('contacts').parse({ email: 'c@b.ch' }))
      await insertEvents(tx, [{ name: 'invoice.paid', data: { id } }])
      return tx
        .trx('events')
        .where({ organization_id: organizationId, subject_id: id })
        .orderBy('id')
        .select('name', tx.trx.raw('created_at = cast(now() as timestamptz(3)) as "asOld"'))
    })
    assert.deepEqual(rows, [
      { name: 'contact.created', asOld: true },
      { name: 'invoice.paid', asOld: true },
    ])
  })

  it('of a run name it as their cause, one deeper in the chain than the run', async () => {
    const first = await startRun()
    const run = await startRun({ depth: 3, cause: first })
    const row = await db.system('runs').where({ id: run }).first('depth', 'cause', 'engine')
    assert.deepEqual(row, { depth: 3, cause: first, engine: 1 })

    const actor: Actor = { type: 'workflow_run', id: run }
    const { id } = await contact(actor)
    await tenant(actor, (tx) => insertEvents(tx, [{ name: 'invoice.paid', data: { id } }]))
    await tenant(actor, (tx) =>
      recordSegment(tx, run, {
        temporal_run_id: 'one',
        segment: 0,
        answer: { commands: [], nodes: [], details: '' },
        nodes: [],
        events: [
          { name: 'invoice.created', data: { id } },
          { name: 'invoice.sent', data: { id } },
        ],
      }),
    )
    const names = ['contact.created', 'invoice.paid', 'invoice.created', 'invoice.sent']
    assert.deepEqual(
      await origins({ subject_id: id }),
      names.map((name) => ({ name, actor, cause: run, depth: 4 })),
    )
  })

  it('of a run that somebody else ended have the run as their cause', async () => {
    const run = await startRun({ depth: 1, cause: randomUUID() })
    await tenant(testActor, (tx) => failRunStart(tx, run, 'No.'))
    assert.deepEqual(await origins({ subject_id: run }), [
      { name: 'workflow.failed', actor: testActor, cause: run, depth: 2 },
    ])
  })
})

describe('runs that a trigger starts', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('start once for each key and workflow', async () => {
    const organizationId = await createOrganization(db)
    const run = (workflowId: string, triggerKey: string | null) =>
      db.tenant(organizationId, testActor, async (tx) => {
        const workflow = { id: workflowId, version: 1, name: 'Test' }
        const trigger = { type: 'event' as const }
        const id = await createRun(tx, { workflow, trigger, inputs: {}, chain: CHAIN_START })
        await tx.trx('runs').where({ id }).update({ trigger_key: triggerKey })
      })
    const [one, other] = await db.tenant(organizationId, testActor, async (tx) => [
      await createEmptyWorkflow(tx),
      await createEmptyWorkflow(tx),
    ])
    await run(one!.id, 'event 1')
    await run(one!.id, 'event 2')
    await run(other!.id, 'event 1')
    await run(one!.id, null)
    await run(one!.id, null)
    await assert.rejects(run(one!.id, 'event 1'), /runs_trigger_key/)
  })
})
