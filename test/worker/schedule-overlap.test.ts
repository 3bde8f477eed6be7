import assert from 'node:assert/strict'
import { fireSchedule } from '../../db/runs/fires.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { createScheduledRuns } from '../../db/runs/scheduled.ts'
import { deactivate } from '../../db/workflows/workflows.ts'
import type { OverlapPolicy } from '../../workflows/language/definition.ts'
import { schedulesOf } from '../support/schedules.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { untilRun } from '../support/worker.ts'

const [FIRST, SECOND, THIRD, FOURTH] = [1, 2, 3, 4].map((hour) => `2026-01-05T0${hour}:00:00.000Z`) as [
  string,
  string,
  string,
  string,
]

describe('the times of a schedule while an earlier run is open', () => {
  const suite = withWorker()
  const { tenant, scheduled, fire, fireAt } = schedulesOf(suite)

  const hourly = (overlap?: OverlapPolicy) => scheduled({ every: '1h', ...(overlap && { overlap }) })
  const running = (id: string | null) => untilRun(suite.db, id!, ['running'])
  const cancel = async (id: string) => {
    await tenant((tx) => cancelRun(tx, id))
    await untilRun(suite.db, id)
  }
  const untilStarted = (id: string, time: string) =>
    until(async () => {
      const found = await fireAt(id, time)
      return found?.status === 'started' && found
    }, `${time} to start`)
  const untilSkipped = (id: string, time: string) =>
    until(async () => {
      const found = await fireAt(id, time)
      return found?.status === 'skipped' && found
    }, `${time} to be skipped`)

  it('are skipped with skip, and fire again after its end', async () => {
    const id = await hourly('skip')
    const first = await fire(id, FIRST)
    await running(first.run_id)
    const { status, reason, run_id, open_run_id } = await fire(id, SECOND)
    assert.deepEqual([status, reason, run_id, open_run_id], ['skipped', 'overlap', null, first.run_id])
    await cancel(first.run_id!)
    assert.equal((await fire(id, THIRD)).status, 'started')
  })

  it('wait with buffer_one, but only one of them', async () => {
    const id = await hourly('buffer_one')
    const first = await fire(id, FIRST)
    await running(first.run_id)
    assert.equal((await fire(id, SECOND)).status, 'waiting')
    assert.equal((await fire(id, THIRD)).reason, 'overlap')
    await cancel(first.run_id!)
    const second = await untilStarted(id, SECOND)
    const { trigger } = await suite.db.system('runs').where({ id: second.run_id }).first()
    assert.deepEqual(trigger, { type: 'schedule', scheduled_at: SECOND, every: '1h', timezone: 'UTC' })
  })

  it('wait in their order with buffer_all', async () => {
    const id = await hourly('buffer_all')
    const first = await fire(id, FIRST)
    await running(first.run_id)
    await fire(id, THIRD)
    await fire(id, SECOND)
    await cancel(first.run_id!)
    const second = await untilStarted(id, SECOND)
    assert.equal((await fireAt(id, THIRD))?.status, 'waiting')
    await running(second.run_id)
    await cancel(second.run_id!)
    await untilStarted(id, THIRD)
  })

  it('cancel the open run with cancel_other, and start when it has ended; an older time starts nothing', async () => {
    const id = await hourly('cancel_other')
    const first = await fire(id, SECOND)
    await running(first.run_id)
    assert.equal((await fire(id, FIRST)).reason, 'superseded')
    await fire(id, THIRD)
    const ended = await untilRun(suite.db, first.run_id!)
    assert.equal(ended.status, 'cancelled')
    const third = await untilStarted(id, THIRD)
    const { created_at } = await suite.db.system('runs').where({ id: third.run_id }).first()
    const { ended_at } = await suite.db.system('runs').where({ id: first.run_id }).first()
    assert.ok(created_at >= ended_at)
  })

  it('terminate the open run with terminate_other, and start at once', async () => {
    const id = await hourly('terminate_other')
    const first = await fire(id, FIRST)
    await running(first.run_id)
    assert.equal((await fire(id, SECOND)).status, 'started')
    assert.equal((await untilRun(suite.db, first.run_id!)).status, 'terminated')
  })

  it('leave the runs of a backfill alone, whatever they replace', async () => {
    for (const overlap of ['cancel_other', 'terminate_other'] as const) {
      const id = await hourly(overlap)
      const time = { scheduled_at: FIRST, source: 'backfill' } as const
      const run_id = (await tenant((tx) => createScheduledRuns(tx, id, [time]))).get(FIRST)!
      await running(run_id)
      assert.equal((await fire(id, SECOND)).status, 'started')
      await new Promise((resolve) => setTimeout(resolve, 300))
      assert.equal((await suite.db.system('runs').where({ id: run_id }).first()).status, 'running')
    }
  })

  it('start beside it with allow_all, and without a policy', async () => {
    for (const id of [await hourly('allow_all'), await hourly()])
      for (const time of [FIRST, SECOND, THIRD]) assert.equal((await fire(id, time)).status, 'started')
  })

  it('are decided one after the other: two at the same moment start one run', async () => {
    const id = await hourly('skip')
    const startedAt = new Date().toISOString()
    const fires = await Promise.all(
      [FIRST, SECOND, THIRD, FOURTH].map((scheduledAt) =>
        tenant((tx) => fireSchedule(tx, id, { scheduledAt, startedAt })),
      ),
    )
    assert.deepEqual(fires.map((one) => one?.status).sort(), ['skipped', 'skipped', 'skipped', 'started'])
  })

  it('that wait are skipped when the workflow is deactivated', async () => {
    const id = await hourly('buffer_all')
    const first = await fire(id, FIRST)
    await running(first.run_id)
    await fire(id, SECOND)
    await tenant((tx) => deactivate(tx, id))
    assert.equal((await untilSkipped(id, SECOND)).reason, 'inactive')
  })
})

describe('a time of a schedule that no worker could fire', () => {
  const suite = withWorker()
  const { tenant, scheduled } = schedulesOf(suite)

  it('is skipped after the catch-up window, which begins when Temporal fired it', async () => {
    const id = await scheduled({ every: '1h', catchup_window: '2h' })
    const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
    const fired = (scheduledAt: string, startedAt: string) =>
      tenant((tx) => fireSchedule(tx, id, { scheduledAt, startedAt }))
    assert.equal((await fired(FIRST, ago(130)))?.reason, 'catchup_window')
    assert.equal((await fired(SECOND, ago(110)))?.status, 'started')
  })
})
