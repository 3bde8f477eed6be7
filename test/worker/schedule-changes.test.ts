import assert from 'node:assert/strict'
import { fireSchedule } from '../../db/runs/fires.ts'
import { Sweep } from '../../worker/sweep.ts'
import { testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withApiAndWorker } from '../support/with-api.ts'
import { testLog, untilRun } from '../support/worker.ts'

const specOf = (trigger: string, node = '{type: set_fields, config: {fields: {text: Hello}}}') =>
  `name: Report\ntrigger: {type: schedule, ${trigger}}\nnodes: {say: ${node}}\n`

describe('the schedule of a workflow in the API', () => {
  const suite = withApiAndWorker()

  const call = (method: string, path: string, body?: unknown) =>
    suite.api.request(method, `/v1/workflows${path}`, body === undefined ? {} : { body })
  const post = (path: string, body: unknown = {}) => call('POST', path, body)
  const schedule = async (id: string) => (await call('GET', `/${id}/schedule`)).body
  async function active(trigger: string, node?: string): Promise<string> {
    const { body } = await post('', { spec: specOf(trigger, node) })
    assert.equal((await post(`/${body.workflow_id}/activate`)).status, 200)
    return body.workflow_id
  }
  const inTemporal = async (id: string) => {
    await until(async () => {
      const row = await suite.db.system('workflow_schedules').where({ workflow_id: id }).first()
      return row.synced === row.revision
    }, 'Temporal to be told')
    return suite.worker.client.schedule.getHandle(`schedule:${id}`).describe()
  }
  const sweep = () => {
    const { client, taskQueue } = suite.worker
    return new Sweep({ db: suite.db, client, taskQueue, log: testLog }).once('0 seconds')
  }
  const runsOf = (id: string) =>
    suite.db.system('runs').where({ workflow_id: id }).orderBy('scheduled_at').select()
  const untilRuns = (id: string, count: number) =>
    until(async () => {
      const runs = await runsOf(id)
      return runs.length === count && runs
    }, `${count} runs`)

  it('shows the next ten times, which are those of Temporal, in UTC and in its time zone', async () => {
    const id = await active('cron: "30 2 * * *", timezone: Europe/Zurich, jitter: 10m, catchup_window: 2h')
    const body = await schedule(id)
    assert.deepEqual(
      [body.state, body.paused, body.cron, body.overlap, body.catchup_window, body.jitter, body.fires],
      ['active', null, '30 2 * * *', null, '2h', '10m', []],
    )
    const { spec, policies, info } = await inTemporal(id)
    assert.deepEqual([spec.jitter, policies.catchupWindow], [600_000, 7_200_000])
    assert.equal(body.next_times.length, 10)
    for (const [i, { at, local }] of body.next_times.entries()) {
      const delay = info.nextActionTimes[i]!.getTime() - Date.parse(at)
      assert.ok(delay >= 0 && delay <= 600_000, `${delay} ms after ${at}`)
      assert.match(local, /T02:30:00\+0[12]:00$/)
      assert.equal(Date.parse(local), Date.parse(at))
    }
  })

  it('keeps its pause while the workflow has another trigger', async () => {
    const id = await active('every: 1h')
    await post(`/${id}/schedule/pause`, { reason: 'migration' })
    await inTemporal(id)
    const change = async (spec: string) => {
      assert.equal((await call('PATCH', `/${id}`, { spec })).status, 200)
      assert.equal((await post(`/${id}/activate`)).status, 200)
    }
    await change(
      'name: Report\ntrigger: {type: manual}\nnodes: {say: {type: set_fields, config: {fields: {a: b}}}}\n',
    )
    await until(async () => {
      const row = await suite.db.system('workflow_schedules').where({ workflow_id: id }).first()
      return !row || row.synced === row.revision
    }, 'Temporal to be told')
    await change(specOf('every: 2h'))
    assert.deepEqual([(await schedule(id)).state, (await inTemporal(id)).state.paused], ['paused', true])
  })

  it('gives Temporal intervals with their offset', async () => {
    const id = await active('every: 15m, offset: 5m')
    const { spec } = await inTemporal(id)
    assert.deepEqual(spec.intervals, [{ every: 900_000, offset: 300_000 }])
    const { every, offset, timezone, next_times } = await schedule(id)
    assert.deepEqual([every, offset, timezone], ['15m', '5m', 'UTC'])
    assert.match(next_times[0].at, /:(05|20|35|50):00\.000Z$/)
  })

  it('is paused and resumed, with who, when and why, while the workflow stays active', async () => {
    const id = await active('every: 1h')
    const paused = (await post(`/${id}/schedule/pause`, { reason: 'migration' })).body
    assert.deepEqual(
      [paused.state, paused.paused.reason, paused.paused.by.type],
      ['paused', 'migration', 'key'],
    )
    assert.ok(Date.parse(paused.paused.at) <= Date.now())
    const again = (await post(`/${id}/schedule/pause`, {})).body
    assert.deepEqual(again.paused, paused.paused)
    assert.equal((await inTemporal(id)).state.paused, true)
    assert.equal((await call('GET', `/${id}`)).body.status, 'active')

    // A time that Temporal fired just before it was told.
    const time = { scheduledAt: '2026-01-05T01:00:00.000Z', startedAt: new Date().toISOString() }
    await suite.db.tenant(suite.api.organizationId, testActor, (tx) => fireSchedule(tx, id, time))
    const { fires } = await schedule(id)
    assert.deepEqual([fires[0].status, fires[0].reason], ['skipped', 'paused'])
    assert.equal(fires[0].message, 'The schedule was paused.')

    await post(`/${id}/activate`)
    assert.equal((await inTemporal(id)).state.paused, true, 'an activation does not resume it')
    await sweep()
    assert.equal((await inTemporal(id)).state.paused, true, 'the sweep does not resume it')

    assert.equal((await post(`/${id}/schedule/resume`)).body.state, 'active')
    assert.equal((await inTemporal(id)).state.paused, false)
    assert.deepEqual(await runsOf(id), [])
    const { rows } = await suite.db.system.raw(
      `select action, details from audit_log where target_id = ? and action like 'workflow.schedule%' order by id`,
      [id],
    )
    assert.deepEqual(rows, [
      { action: 'workflow.schedule_paused', details: { reason: 'migration' } },
      { action: 'workflow.schedule_resumed', details: {} },
    ])
  })

  it('keeps an operator’s pause in Temporal, and shows it', async () => {
    const id = await active('every: 1h')
    await inTemporal(id)
    assert.equal((await schedule(id)).paused_in_temporal, null)
    const handle = suite.worker.client.schedule.getHandle(`schedule:${id}`)
    await handle.pause('maintenance')
    await sweep()
    const shown = await schedule(id)
    assert.deepEqual([shown.state, shown.paused_in_temporal], ['active', { note: 'maintenance' }])
    await post(`/${id}/schedule/pause`, {})
    assert.equal((await inTemporal(id)).state.note, 'maintenance')
    await post(`/${id}/schedule/resume`)
    assert.deepEqual((await inTemporal(id)).state.paused, true)
    await handle.unpause()
    await sweep()
    assert.equal((await schedule(id)).paused_in_temporal, null)
  })

  it('is filled with the runs of a period, each once, after a preview', async () => {
    const id = await active('cron: "0 3 * * *", timezone: Europe/Zurich')
    const period = { from: '2026-03-27T00:00:00Z', to: '2026-03-31T00:00:00Z' }
    const preview = (await post(`/${id}/backfill`, period)).body
    assert.equal(preview.status, 'confirmation_required')
    const { total, already_fired, times, overlap } = preview.preview
    assert.deepEqual([total, already_fired, overlap], [4, 0, 'buffer_all'])
    assert.deepEqual(
      times.map((time: string) => time.slice(0, 16)),
      ['2026-03-27T02:00', '2026-03-28T02:00', '2026-03-29T01:00', '2026-03-30T01:00'],
    )
    assert.deepEqual(await runsOf(id), [])

    const [first, second] = await Promise.all(
      [1, 2].map(() => post(`/${id}/backfill`, { ...period, confirm: true })),
    )
    assert.equal(first!.body.queued + second!.body.queued, 4)
    const runs = await untilRuns(id, 4)
    for (const [i, run] of runs.entries()) {
      assert.equal(run.trigger.scheduled_at, times[i])
      assert.equal(run.trigger.backfill, true)
      const { ended_at } = await untilRun(suite.db, run.id).then(() =>
        suite.db.system('runs').where({ id: run.id }).first(),
      )
      if (runs[i + 1]) assert.ok(runs[i + 1].created_at >= ended_at, 'one after the other')
    }
    const wider = { from: '2026-03-26T00:00:00Z', to: period.to, confirm: true }
    const { body } = await post(`/${id}/backfill`, wider)
    assert.deepEqual([body.total, body.already_fired, body.queued], [5, 4, 1])
    await untilRuns(id, 5)
    const { fires, waiting } = await until(async () => {
      const found = await schedule(id)
      return found.waiting === 0 && found
    }, 'the last to start')
    assert.deepEqual(
      [waiting, fires.map((fire: { source: string; status: string }) => [fire.source, fire.status])],
      [0, Array.from({ length: 5 }, () => ['backfill', 'started'])],
    )
  })

  it('starts a backfill at once with allow_all, and a paused one when it is resumed', async () => {
    const id = await active('every: 1h, overlap: skip', '{type: delay, config: {for: 1d}}')
    await post(`/${id}/schedule/pause`, {})
    const period = { from: '2026-01-05T00:30:00Z', to: '2026-01-05T03:30:00Z' }
    const { body } = await post(`/${id}/backfill`, { ...period, overlap: 'allow_all', confirm: true })
    assert.equal(body.queued, 3)
    const held = await schedule(id)
    assert.deepEqual([held.waiting, (await runsOf(id)).length], [3, 0])
    await post(`/${id}/schedule/resume`)
    const runs = await untilRuns(id, 3)
    for (const run of runs) await untilRun(suite.db, run.id, ['running'])
  })

  it('starts a time that was skipped, if it is backfilled', async () => {
    const id = await active('every: 1h, overlap: skip')
    await post(`/${id}/schedule/pause`, {})
    const time = { scheduledAt: '2026-01-05T01:00:00.000Z', startedAt: new Date().toISOString() }
    await suite.db.tenant(suite.api.organizationId, testActor, (tx) => fireSchedule(tx, id, time))
    await post(`/${id}/schedule/resume`)
    const period = { from: time.scheduledAt, to: time.scheduledAt, confirm: true }
    assert.equal((await post(`/${id}/backfill`, period)).body.queued, 1)
    await untilRuns(id, 1)
  })

  it('refuses a backfill that is too long, in the future, reversed, or too long ago, with the fix', async () => {
    const id = await active('cron: "* * * * *"')
    const refused = async (from: string, to: string) => {
      const { status, body } = await post(`/${id}/backfill`, { from, to, confirm: true })
      return { status, ...body.error, detail: body.detail }
    }
    const now = Date.now()
    const ago = (days: number) => new Date(now - days * 86_400_000).toISOString()
    const long = await refused(ago(3_650), ago(0))
    assert.deepEqual([long.status, long.param], [409, 'from'])
    assert.match(
      long.message,
      /^the period has 525600\d times of the schedule; a backfill has at most 10000$/,
    )
    assert.match(long.hint, /shorter period/)
    const future = await refused(ago(1), ago(-1))
    assert.deepEqual([future.status, future.message], [422, 'to: must not be in the future'])
    assert.match(future.hint, /fires the times to come/)
    assert.equal((await refused(ago(1), ago(2))).message, 'from: must not be after to')
    assert.equal(
      (await refused('2001-01-01T00:00:00Z', ago(2))).message,
      'from: must be within the last 10 years',
    )
    assert.deepEqual(await suite.db.system('schedule_fires').where({ workflow_id: id }), [])
  })

  it('is refused for a workflow without one, or that is not active', async () => {
    const { body: manual } = await post('', { spec: 'name: Manual\nnodes: {a: {type: stop}}\n' })
    const { body: draft } = await post('', { spec: specOf('every: 1h') })
    const period = { from: '2026-01-05T00:00:00Z', to: '2026-01-06T00:00:00Z', confirm: true }
    for (const { workflow_id: id } of [manual, draft])
      for (const answer of [
        await post(`/${id}/backfill`, period),
        await post(`/${id}/schedule/pause`, {}),
        await post(`/${id}/schedule/resume`),
      ]) {
        assert.equal(answer.status, 409)
        assert.equal(answer.body.error.message, 'the workflow has no active schedule')
        assert.match(answer.body.error.hint, /trigger of the type schedule, and activate it/)
      }
    assert.equal((await call('GET', `/${manual.workflow_id}/schedule`)).status, 404)
    const shown = await schedule(draft.workflow_id)
    assert.deepEqual([shown.state, shown.next_times.length], ['inactive', 10])
  })
})
