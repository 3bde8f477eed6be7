import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Client, type ScheduleDescription, ScheduleOverlapPolicy } from '@temporalio/client'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { fireSchedule } from '../../db/runs/fires.ts'
import {
  activate,
  deactivate,
  deleteWorkflow,
  getWorkflow,
  lockWorkflow,
  updateWorkflow,
} from '../../db/workflows/workflows.ts'
import { NamespaceAttributes } from '../../worker/namespace-attributes.ts'
import { schedulesQueue } from '../../worker/queues/schedules.ts'
import { Sweep } from '../../worker/sweep.ts'
import type { Trigger } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { testLog, untilRun } from '../support/worker.ts'
import { createEmptyWorkflow, emptyVersion } from '../support/workflows.ts'

const daily: Trigger = { type: 'schedule', cron: '30 8 * * 1', timezone: 'Europe/Zurich' }
const everyMinute: Trigger = { type: 'schedule', cron: '* * * * *', timezone: 'UTC' }

describe('runs that schedules start', () => {
  const suite = withWorker()

  const tenant = <T>(work: (tx: Tenant) => Promise<T>) =>
    suite.db.tenant(suite.organizationId, testActor, work)
  const scheduled = async (trigger: Trigger) => {
    const { id } = await tenant((tx) => createEmptyWorkflow(tx, trigger))
    await tenant((tx) => activate(tx, id))
    await synced(id)
    return id
  }
  const handleOf = (id: string) => suite.worker.client.schedule.getHandle(`schedule:${id}`)
  const describe = (id: string): Promise<ScheduleDescription | undefined> =>
    handleOf(id)
      .describe()
      .catch(() => undefined)
  /** Waits until Temporal has every change of the workflow. */
  const synced = (id: string) =>
    until(async () => {
      const row = await suite.db.system('workflow_schedules').where({ workflow_id: id }).first()
      return !row || row.synced === row.revision
    }, 'Temporal to be told')
  const runsOf = (id: string) =>
    suite.db.system('runs').where({ workflow_id: id }).orderBy('trigger_key').select()

  it('have a Schedule in Temporal that follows their workflow', async () => {
    const id = await scheduled(daily)
    const created = await describe(id)
    assert.deepEqual(
      [created?.spec.timezone, created?.spec.calendars?.[0]?.hour[0]?.start, created?.state.paused],
      ['Europe/Zurich', 8, false],
    )
    assert.deepEqual(created?.memo, { organization_id: suite.organizationId, workflow_id: id })
    assert.deepEqual(created?.searchAttributes.AgxWorkflow, [id])
    assert.equal(created?.policies.overlap, ScheduleOverlapPolicy.BUFFER_ONE)
    assert.equal(created?.info.nextActionTimes[0]?.getUTCDay(), 1)

    const saved = await tenant(async (tx) => {
      const before = await lockWorkflow(tx, id, undefined)
      return updateWorkflow(tx, before, { name: 'Renamed', content: emptyVersion(everyMinute) })
    })
    await synced(id)
    assert.equal((await describe(id))?.spec.timezone, 'Europe/Zurich', 'a saved version changes nothing')
    assert.equal(saved.active_version, 1)
    await tenant((tx) => activate(tx, id))
    await synced(id)
    const updated = await describe(id)
    assert.equal(updated?.spec.timezone, 'UTC')
    assert.deepEqual(updated?.searchAttributes.AgxWorkflowName, ['Renamed'])

    await tenant((tx) => deactivate(tx, id))
    await synced(id)
    const paused = await describe(id)
    assert.deepEqual([paused?.state.paused, paused?.state.note], [true, 'The workflow is inactive.'])
    await tenant((tx) => activate(tx, id))
    await synced(id)
    assert.equal((await describe(id))?.state.paused, false)

    await tenant((tx) => deleteWorkflow(tx, id))
    await until(async () => !(await describe(id)), 'the Schedule to be deleted')
    await until(async () => {
      const rows = await suite.db.system('workflow_schedules').where({ workflow_id: id })
      return rows.length === 0
    }, 'its row to be deleted')
  })

  it('are started by later fires after one that can never succeed', async () => {
    const id = await scheduled(daily)
    const asOwner = (sql: string) => suite.db.asOwner((owner) => owner.query(sql))
    await asOwner(`create function refuse_scheduled() returns trigger language plpgsql as
      $$ begin raise exception 'refused'; end $$`)
    await asOwner(`create trigger refuse_scheduled before insert on runs for each row
      when (new.trigger ->> 'type' = 'schedule') execute function refuse_scheduled()`)
    const fires = async () => (await handleOf(id).describe()).info.recentActions
    try {
      await handleOf(id).trigger()
      const workflow = await until(async () => (await fires())[0]?.action.workflow, 'the fire')
      const handle = suite.worker.client.workflow.getHandle(workflow.workflowId)
      await until(async () => (await handle.describe()).status.name === 'FAILED', 'its end')
    } finally {
      await asOwner('drop trigger refuse_scheduled on runs')
    }
    await handleOf(id).trigger()
    await until(async () => (await runsOf(id)).length === 1, 'the run of the next fire')
  })

  it('lose their Schedule with a version that has another trigger', async () => {
    const id = await scheduled(daily)
    await tenant(async (tx) => {
      const before = await lockWorkflow(tx, id, undefined)
      await updateWorkflow(tx, before, { content: emptyVersion({ type: 'manual' }) })
      await activate(tx, id)
    })
    await until(async () => !(await describe(id)), 'the Schedule to be deleted')
  })

  it('start once per scheduled time, also if it is queued again', async () => {
    const id = await scheduled(daily)
    const times = { start: new Date('2026-01-01T00:00:00Z'), end: new Date('2026-01-18T00:00:00Z') }
    await handleOf(id).backfill({ ...times, overlap: ScheduleOverlapPolicy.ALLOW_ALL })
    await until(async () => (await runsOf(id)).length === 2, 'two runs')
    const runs = await runsOf(id)
    const expected = ['2026-01-05T07:30:00.000Z', '2026-01-12T07:30:00.000Z']
    assert.deepEqual(
      runs.map((run) => run.trigger),
      expected.map((scheduled_at) => ({ ...daily, scheduled_at })),
    )
    assert.deepEqual(
      runs.map((run) => [run.trigger_key, run.priority, run.depth]),
      expected.map((key) => [key, 1, 0]),
    )
    const time = { scheduledAt: expected[0]!, startedAt: new Date().toISOString() }
    const again = await tenant((tx) => fireSchedule(tx, id, time))
    assert.deepEqual([again?.run_id, (await runsOf(id)).length], [runs[0].id, 2])
    for (const run of runs) assert.equal((await untilRun(suite.db, run.id)).status, 'completed')
  })

  it('skip a time that a change of clocks leaves out, and start once at one that it repeats', async () => {
    const id = await scheduled({ type: 'schedule', cron: '30 2 * * *', timezone: 'Europe/Zurich' })
    const backfill = async (start: string, end: string, count: number) => {
      const before = (await runsOf(id)).length
      const overlap = ScheduleOverlapPolicy.ALLOW_ALL
      await handleOf(id).backfill({ start: new Date(start), end: new Date(end), overlap })
      await until(async () => (await runsOf(id)).length === before + count, `${count} runs`)
    }
    await backfill('2026-03-27T12:00:00Z', '2026-03-30T12:00:00Z', 2)
    await backfill('2026-10-24T12:00:00Z', '2026-10-26T12:00:00Z', 2)
    assert.deepEqual(
      (await runsOf(id)).map((run) => run.trigger_key.slice(0, 16)),
      ['2026-03-28T01:30', '2026-03-30T00:30', '2026-10-25T01:30', '2026-10-26T01:30'],
    )
  })

  it('start at a click in the Temporal UI, and not if the workflow is inactive', async () => {
    const id = await scheduled(daily)
    // Temporal gives whole seconds.
    const begun = Math.floor(Date.now() / 1_000) * 1_000
    await handleOf(id).trigger()
    const [run] = await until(async () => {
      const runs = await runsOf(id)
      return runs.length > 0 && runs
    }, 'a run')
    const at = Date.parse(run.trigger.scheduled_at)
    assert.ok(at >= begun && at <= Date.now(), run.trigger.scheduled_at)
    await tenant((tx) => deactivate(tx, id))
    await synced(id)
    await handleOf(id).trigger()
    await until(async () => {
      const { info } = (await describe(id))!
      return info.numActionsTaken === 2 && info.runningActions.length === 0
    }, 'the second fire')
    assert.equal((await runsOf(id)).length, 1)
  })

  it('get a Schedule back that somebody deleted in Temporal; an operator’s pause stays', async () => {
    const [lost, paused] = [await scheduled(daily), await scheduled(daily)]
    await handleOf(lost).delete()
    await handleOf(paused).pause('maintenance')
    const sweep = new Sweep({
      db: suite.db,
      client: suite.worker.client,
      taskQueue: suite.worker.taskQueue,
      log: testLog,
    })
    await sweep.once('0 seconds')
    await until(() => describe(lost), 'the Schedule to be created again')
    await synced(lost)
    await suite.db.system('workflow_schedules').where({ workflow_id: paused }).update({ synced: null })
    await until(async () => {
      const row = await suite.db.system('workflow_schedules').where({ workflow_id: paused }).first()
      return row.synced === row.revision
    }, 'the other to be told again')
    assert.deepEqual((await describe(paused))?.state, {
      paused: true,
      note: 'maintenance',
      remainingActions: undefined,
    })
  })

  it('lose a Schedule that the database does not know when it fires', async () => {
    const id = await scheduled(daily)
    await suite.db.system('workflow_schedules').where({ workflow_id: id }).delete()
    await suite.db.system('workflow_triggers').where({ workflow_id: id }).delete()
    await handleOf(id).trigger()
    await until(async () => !(await describe(id)), 'the Schedule to be deleted')
    assert.deepEqual(await runsOf(id), [])
  })

  it('have a Schedule without search attributes in a namespace that lacks them', async () => {
    const { connection, client } = suite.worker
    const namespace = `bare-${randomUUID()}`
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as unknown as never },
    })
    const id = await scheduled(daily)
    const bare = new Client({ connection, namespace })
    const queue = schedulesQueue({
      db: suite.db,
      taskQueue: suite.worker.taskQueue,
      attributes: new NamespaceAttributes(testLog),
    })
    const row = { organization_id: suite.organizationId, workflow_id: id }
    await until(
      () =>
        queue.start(bare, row).then(
          () => true,
          (error) => error.name === 'Refused' && Promise.reject(error),
        ),
      'the namespace',
    )
    const found = await bare.schedule.getHandle(`schedule:${id}`).describe()
    assert.deepEqual([found.spec.timezone, found.searchAttributes.AgxWorkflow], ['Europe/Zurich', undefined])
    assert.deepEqual(
      (await client.schedule.getHandle(`schedule:${id}`).describe()).searchAttributes.AgxWorkflow,
      [id],
    )
  })

  it('show as the problem of their trigger what Temporal refuses', async () => {
    const id = await scheduled({ type: 'schedule', cron: '99 * * * *', timezone: 'UTC' })
    const { trigger_problem } = await tenant((tx) => getWorkflow(tx, id))
    assert.match(trigger_problem?.message ?? '', /^Temporal refused the schedule: /)
    assert.equal(await describe(id), undefined)
  })

  it('start when their time comes', async () => {
    const id = await scheduled(daily)
    // The shortest interval of ours is a minute.
    await handleOf(id).update(({ state, policies, action }) => ({
      state,
      policies,
      action,
      spec: { intervals: [{ every: '1 second' }] },
    }))
    const [run] = await until(async () => {
      const runs = await runsOf(id)
      return runs.length > 0 && runs
    }, 'a run')
    await tenant((tx) => deleteWorkflow(tx, id))
    assert.equal((await untilRun(suite.db, run.id)).status, 'completed')
    const { started_at } = await suite.db.system('runs').where({ id: run.id }).first()
    assert.ok(started_at.getTime() >= Date.parse(run.trigger_key), 'not before its time')
  })
})
