import assert from 'node:assert/strict'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { replaceTriggers } from '../../../db/workflows/triggers.ts'
import { activate, deactivate, deleteWorkflow, updateWorkflow } from '../../../db/workflows/workflows.ts'
import type { Trigger } from '../../../workflows/language/definition.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { createEmptyWorkflow, emptyVersion } from '../../support/workflows.ts'

describe('the triggers of workflows', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  after(() => db.drop())

  const tenant = <T>(work: (tx: Tenant) => Promise<T>): Promise<T> =>
    db.tenant(organizationId, testActor, work)
  const saved = (trigger?: Trigger) => tenant((tx) => createEmptyWorkflow(tx, trigger))
  const rows = async (workflowId: string) => {
    const found = await db.system('workflow_triggers').where({ workflow_id: workflowId }).orderBy('position')
    return found.map(({ organization_id: _, workflow_id: __, active_since: ___, ...row }) => row)
  }
  const none = {
    events: null,
    when: null,
    schedule: null,
    inputs: {},
    problem: null,
    problems: 0,
  }

  it('are none before the first activation, those of the active version after, and none again', async () => {
    const { id } = await saved({ type: 'webhook' })
    assert.deepEqual(await rows(id), [])
    await tenant((tx) => activate(tx, id))
    const expected = [{ ...none, position: 0, version: 1, type: 'webhook' }]
    assert.deepEqual(await rows(id), expected)
    await tenant((tx) => activate(tx, id))
    assert.deepEqual(await rows(id), expected)
    await tenant((tx) => deactivate(tx, id))
    assert.deepEqual(await rows(id), [])
  })

  it('stay while a newer version is only saved, and are replaced when it is activated', async () => {
    const workflow = await saved({ type: 'webhook' })
    const { id } = workflow
    const active = await tenant((tx) => activate(tx, id))
    await tenant((tx) => updateWorkflow(tx, active, { content: emptyVersion({ type: 'manual' }) }))
    assert.deepEqual(await rows(id), [{ ...none, position: 0, version: 1, type: 'webhook' }])
    await tenant((tx) => activate(tx, id))
    assert.deepEqual(await rows(id), [{ ...none, position: 0, version: 2, type: 'manual' }])
  })

  it('go with the workflow', async () => {
    const { id } = await saved()
    await tenant((tx) => activate(tx, id))
    assert.equal((await rows(id)).length, 1)
    await tenant((tx) => deleteWorkflow(tx, id))
    assert.deepEqual(await rows(id), [])
  })

  it('keep what each type needs', async () => {
    const { id } = await saved()
    const events = ['contact.created', 'deal.won']
    await tenant((tx) =>
      replaceTriggers(tx, id, {
        version: 1,
        inputs: {},
        triggers: [
          { type: 'event', events, when: '{{ trigger.data.email }}' },
          { type: 'event', events: ['task.completed'] },
          { type: 'schedule', cron: '0 9 * * 1', timezone: 'Europe/Zurich' },
        ],
      }),
    )
    assert.deepEqual(await rows(id), [
      { ...none, position: 0, version: 1, type: 'event', events, when: '{{ trigger.data.email }}' },
      { ...none, position: 1, version: 1, type: 'event', events: ['task.completed'] },
      {
        ...none,
        position: 2,
        version: 1,
        type: 'schedule',
        schedule: { cron: '0 9 * * 1', timezone: 'Europe/Zurich' },
      },
    ])
  })

  it('are refused without what their type needs', async () => {
    const { id } = await saved()
    for (const trigger of [{ type: 'event' }, { type: 'schedule', timezone: 'UTC' }])
      await assert.rejects(
        tenant((tx) => replaceTriggers(tx, id, { version: 1, inputs: {}, triggers: [trigger as Trigger] })),
        /workflow_triggers_check/,
      )
  })

  it('are found by the name of an event, through an index, among many workflows', async () => {
    const { id } = await saved()
    await db.system.raw(
      `insert into workflow_triggers (organization_id, workflow_id, position, version, type, events)
       select ?, ?, n, 1, 'event', array['kind' || n || '.created', 'kind' || n || '.updated']
       from generate_series(1, 20000) n`,
      [organizationId, id],
    )
    await db.asOwner((client) => client.query('vacuum analyze workflow_triggers'))
    const find = `select position from workflow_triggers
      where organization_id = ? and type = 'event' and events @> array['kind7.updated']`
    const { rows: found } = await db.system.raw(find, [organizationId])
    assert.deepEqual(found, [{ position: 7 }])
    const { rows: plan } = await db.system.raw(`explain ${find}`, [organizationId])
    assert.match(JSON.stringify(plan), /workflow_triggers_events/)
  })
})
