import { randomUUID } from 'node:crypto'
import { isOpenRun } from '../../../db/model/runs/statuses.ts'
import {
  cancelRun,
  endUnrecordedRun,
  failRunStart,
  skipRun,
  terminateRun,
} from '../../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../../db/runs/moves/pauses.ts'
import { recordSegment } from '../../../db/runs/moves/segments.ts'
import {
  markRunsStarted,
  reopenRun,
  resumeRun,
  resumeRuns,
  takeBack,
  takeOver,
} from '../../../db/runs/moves/starts.ts'
import { type EndStatus, RUN_STATUSES, type RunStatus } from '../../../workflows/shared/statuses.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { describeMoves, type Fixture, readTable } from '../../support/moves.ts'
import { createEmptyWorkflow } from '../../support/workflows.ts'

interface RunFixture extends Fixture {
  organizationId: string
  id: string
  set(values: object): Promise<unknown>
}

const OWNER = 'the Temporal run that owns it'

describe('the moves of runs', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  async function fixture(status: string): Promise<RunFixture> {
    const organizationId = await createOrganization(db)
    const key = { organization_id: organizationId, id: randomUUID() }
    const row = () => db.system('runs').where(key)
    const ended = !isOpenRun(status as RunStatus)
    const workflow = await db.tenant(organizationId, testActor, (tx) => createEmptyWorkflow(tx))
    await db.system('runs').insert({
      ...key,
      workflow_id: workflow.id,
      workflow_version: 1,
      workflow_name: 'Test',
      status,
      trigger: { type: 'api' },
      inputs: {},
      temporal_run_id: status === 'queued' ? null : OWNER,
      ended_at: ended ? new Date() : null,
      ...(status === 'paused' && { pause_requested_at: new Date(), paused_at: new Date() }),
    })
    await db.system('run_nodes').insert({
      organization_id: organizationId,
      run_id: key.id,
      node_id: 'open',
      node_type: 'delay',
      title: 'Delay',
      status: 'waiting',
      segment: 0,
      position: 0,
      started_at: new Date(),
    })
    return {
      organizationId,
      id: key.id,
      set: (values) => row().update(values),
      status: async () => (await row().first('status')).status,
      snapshot: async () => ({
        run: await row().first(),
        nodes: await db.system('run_nodes').where({ run_id: key.id }),
        segments: await db.system('run_segments').where({ run_id: key.id }),
        events: await db.system('events').where({ organization_id: organizationId }),
      }),
      remove: () => db.system('organizations').where({ id: organizationId }).delete(),
    }
  }

  const tenant = <T>({ organizationId }: RunFixture, work: Parameters<typeof db.tenant<T>>[2]): Promise<T> =>
    db.tenant(organizationId, testActor, work)
  const error = { code: 'test', message: 'Test' }
  const node = {
    path: '',
    node_id: 'done',
    node_type: 'stop',
    title: 'Stop',
    status: 'completed' as const,
    attempt: 1,
    input: null,
    output: null,
    handle: null,
    error: null,
    wait_until: null,
    segment: 0,
    settled_segment: 0,
    position: 1,
    started_at: new Date().toISOString(),
    ended_at: null,
  }
  const endUnrecorded = (run: RunFixture, to: string, owner: string) =>
    tenant(run, (tx) => endUnrecordedRun(tx, run.id, owner, to as Exclude<EndStatus, 'completed'>, error))
  const ownerOf = async ({ id }: RunFixture) =>
    (await db.system('runs').where({ id }).first('temporal_run_id')).temporal_run_id
  const resumesMany = async ({ organizationId, id }: RunFixture, temporal_run_id: string | null) =>
    (await resumeRuns(db.system, [{ organization_id: organizationId, id, temporal_run_id }])).has(id)
  const takeOverAs = (run: RunFixture, temporalRunId: string) =>
    tenant(run, (tx) => takeOver(tx, run.id, temporalRunId, { segment: 3, count: 2 }))
  /** Gives the version of the run cleanup nodes, or takes them away. */
  const setCleanup = (run: RunFixture, has: boolean) =>
    db
      .system('workflow_versions')
      .where({ organization_id: run.organizationId })
      .update({
        program: db.system.raw(
          has
            ? `cast(jsonb_set(cast(program as jsonb), '{cleanup}', '{}') as json)`
            : `cast(cast(program as jsonb) - 'cleanup' as json)`,
        ),
      })

  const unclaim = ({ id }: RunFixture) => db.system('run_claims').where({ run_id: id }).delete()
  const claim = ({ organizationId, id }: RunFixture) =>
    db
      .system('run_claims')
      .insert({ organization_id: organizationId, run_id: id, relay_id: randomUUID() })
      .onConflict()
      .ignore()
  const reopen = (run: RunFixture, temporalRunId: string) =>
    tenant(run, (tx) => reopenRun(tx, run.id, temporalRunId, 0))

  describeMoves<RunFixture>({
    table: readTable('db/model/runs/statuses.ts'),
    statuses: RUN_STATUSES,
    fixture,
    drivers: {
      markRunsStarted: {
        act: async ({ organizationId, id }) =>
          (await markRunsStarted(db.system, [{ organization_id: organizationId, id, resumes: 0 }])) === 1,
        unmet: {
          'a run that was resumed since': async ({ organizationId, id, set }) => {
            await set({ resumes: 1 })
            return (
              (await markRunsStarted(db.system, [{ organization_id: organizationId, id, resumes: 0 }])) === 1
            )
          },
        },
      },
      recordSegment: {
        act: (run, to) =>
          tenant(run, async (tx) => {
            await recordSegment(tx, run.id, {
              temporal_run_id: OWNER,
              // Each call is a new Temporal run.
              segment: Math.floor(Math.random() * 1e9),
              answer: { commands: [], nodes: [], details: '' },
              nodes: [node],
              events: [{ name: 'test.done', data: {} }],
              ...(to === 'paused'
                ? { paused: true }
                : to === 'running'
                  ? {}
                  : { end: { status: to as EndStatus, outputs: {}, error: null } }),
            })
            return true
          }),
      },
      cancelRun: [
        {
          arrange: async (run) => {
            await unclaim(run)
            await setCleanup(run, false)
          },
          act: async (run) => {
            const before = await run.status()
            const after = await tenant(run, (tx) => cancelRun(tx, run.id))
            return before !== after
          },
        },
        {
          arrange: async (run) => {
            await run.set({ cancel_requested_at: null })
            await claim(run)
          },
          act: async (run) => {
            // The other line has the move of a paused run.
            if ((await run.status()) === 'paused') return false
            await tenant(run, (tx) => cancelRun(tx, run.id))
            const row = await db.system('runs').where({ id: run.id }).first('cancel_requested_at')
            return row.cancel_requested_at !== null
          },
        },
        {
          arrange: async (run) => {
            await setCleanup(run, true)
            await run.set({ pause_requested_at: new Date() })
          },
          act: async (run) => {
            if ((await run.status()) !== 'paused') return false
            return (await tenant(run, (tx) => cancelRun(tx, run.id))) === 'queued'
          },
        },
      ],
      pauseRun: [
        {
          arrange: unclaim,
          act: async (run) => {
            const before = await run.status()
            return before !== (await tenant(run, (tx) => pauseRun(tx, run.id)))
          },
        },
        {
          arrange: async (run) => {
            await claim(run)
            if ((await run.status()) !== 'paused') await run.set({ pause_requested_at: null })
          },
          act: async (run) => {
            const before = await run.status()
            const after = await tenant(run, (tx) => pauseRun(tx, run.id))
            return before === after && before !== 'paused'
          },
        },
      ],
      unpauseRun: [
        {
          act: async (run) => {
            const before = await run.status()
            return before !== (await tenant(run, (tx) => unpauseRun(tx, run.id)))
          },
        },
        {
          arrange: (run) => run.set({ pause_requested_at: new Date() }),
          act: async (run) => {
            const before = await run.status()
            if (before === 'paused') return false
            return before === (await tenant(run, (tx) => unpauseRun(tx, run.id)))
          },
        },
      ],
      terminateRun: { act: (run) => tenant(run, (tx) => terminateRun(tx, run.id)) },
      skipRun: {
        arrange: unclaim,
        act: (run) => tenant(run, (tx) => skipRun(tx, run.id, 'Another run is running.')),
        unmet: {
          'a run that a relay has claimed': async (run) => {
            await claim(run)
            return tenant(run, (tx) => skipRun(tx, run.id, 'Another run is running.'))
          },
        },
      },
      failRunStart: { act: (run) => tenant(run, (tx) => failRunStart(tx, run.id, 'no such queue')) },
      endUnrecordedRun: {
        arrange: (run) => run.set({ temporal_run_id: OWNER }),
        act: (run, to) => endUnrecorded(run, to, OWNER),
        unmet: {
          'a run that another Temporal run owns': (run, to) => endUnrecorded(run, to, 'the one before'),
        },
      },
      resumeRun: {
        act: (run) => tenant(run, async (tx) => resumeRun(tx, run.id, await ownerOf(run))),
        unmet: {
          'a run that another Temporal run owns': (run) =>
            tenant(run, (tx) => resumeRun(tx, run.id, 'the one before')),
          'a run that was resumed ten times': async (run) => {
            await run.set({ resumes: 10 })
            return tenant(run, async (tx) => resumeRun(tx, run.id, await ownerOf(run)))
          },
        },
      },
      resumeRuns: {
        act: async (run) => resumesMany(run, await ownerOf(run)),
        unmet: {
          'a run that another Temporal run owns': (run) => resumesMany(run, 'the one before'),
          'a run that was resumed ten times': async (run) => {
            await run.set({ resumes: 10 })
            return resumesMany(run, await ownerOf(run))
          },
        },
      },
      takeOver: {
        arrange: (run) => run.set({ resumes: 2, temporal_run_id: OWNER }),
        act: (run) => takeOverAs(run, `resumed ${randomUUID()}`),
        unmet: {
          'a run that was resumed again': async (run) => {
            await run.set({ resumes: 3, temporal_run_id: OWNER })
            return takeOverAs(run, 'late')
          },
          'a run that went on': async (run) => {
            await run.set({ resumes: 2, temporal_run_id: OWNER })
            await db.system('run_segments').insert({
              organization_id: run.organizationId,
              run_id: run.id,
              segment: 5,
              answer: {},
              temporal_run_id: OWNER,
            })
            return takeOverAs(run, 'late')
          },
        },
      },
      takeBack: {
        arrange: (run) => run.set({ temporal_run_id: OWNER }),
        act: (run) => tenant(run, (tx) => takeBack(tx, run.id, `restored ${randomUUID()}`)),
        unmet: {
          'a run that this Temporal run owns': async (run) => {
            await run.set({ temporal_run_id: OWNER })
            return tenant(run, (tx) => takeBack(tx, run.id, OWNER))
          },
        },
      },
      reopenRun: {
        act: (run) => reopen(run, `reset ${randomUUID()}`),
        unmet: {
          'a run that this Temporal run owns': (run) => reopen(run, OWNER),
          'a workflow that resumes the run, and was not reset': (run) =>
            tenant(run, (tx) => reopenRun(tx, run.id, `resumed ${randomUUID()}`, 3, { origin: 'resumed' })),
          // It was to begin when the run was resumed once more: then Temporal was restored to that moment.
          'a workflow that resumes the run, whose first segment was recorded by another': async (run) => {
            await db.system('run_segments').insert({
              organization_id: run.organizationId,
              run_id: run.id,
              segment: 3,
              answer: {},
              temporal_run_id: 'resumed once more',
            })
            return tenant(run, (tx) => reopenRun(tx, run.id, 'resumed', 3, { origin: 'resumed' }))
          },
          'a run that this Temporal run once owned': async (run) => {
            await db.system('run_segments').insert({
              organization_id: run.organizationId,
              run_id: run.id,
              segment: 0,
              answer: {},
              temporal_run_id: 'superseded',
            })
            return reopen(run, 'superseded')
          },
        },
      },
    },
  })
})
