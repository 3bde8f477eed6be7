import assert from 'node:assert/strict'
import { createSchema } from '../../db/model/records/schemas.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { createRecord } from '../../db/records/create.ts'
import { listDueReminders, raiseReminders } from '../../db/records/reminders.ts'
import { updateRecord } from '../../db/records/update.ts'
import { testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'

describe('the reminder of a task', () => {
  const suite = withWorker()
  const tenant = <T>(work: (tx: Tenant) => Promise<T>) =>
    suite.db.tenant(suite.organizationId, testActor, work)
  const create = (values: object) =>
    tenant((tx) => createRecord(tx, 'tasks', createSchema('tasks').parse({ title: 'Call', ...values })))
  const reminders = (id: string) => suite.db.system('events').where({ subject_id: id, name: 'task.reminder' })
  const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString()
  /** Sets the reminder to this moment: one that passes while it is being set is none. */
  const remind = (id: string) => suite.db.system('tasks').where({ id }).update({ reminder_at: new Date() })

  it('is raised at its time, once, and again at another time', async () => {
    const task = await create({ reminder_at: inAnHour() })
    const done = await create({ reminder_at: inAnHour(), status: 'done' })
    const past = await create({ reminder_at: '2020-01-01T09:00:00.000Z' })
    const later = await create({ reminder_at: inAnHour() })
    for (const { id } of [task, done]) await remind(id)
    const [event] = await until(async () => {
      const found = await reminders(task.id)
      return found.length > 0 && found
    }, 'the reminder')
    assert.deepEqual([event.data.object, event.data.title], ['task', 'Call'])
    // A relay that found them at the same time.
    await tenant((tx) => raiseReminders(tx, [task.id, done.id, past.id, later.id]))
    assert.equal((await reminders(task.id)).length, 1)
    for (const { id } of [done, past, later]) assert.deepEqual(await reminders(id), [])

    await tenant((tx) => updateRecord(tx, 'tasks', task.id, { title: 'Call back' }))
    await tenant((tx) => raiseReminders(tx, [task.id]))
    assert.equal((await reminders(task.id)).length, 1)
    await remind(task.id)
    await until(async () => (await reminders(task.id)).length === 2, 'the second reminder')
    assert.deepEqual(await listDueReminders(suite.db.system, 10), [])
  })
})
