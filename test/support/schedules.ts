import { ScheduleOverlapPolicy } from '@temporalio/client'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Fire } from '../../db/runs/fires.ts'
import { activate, createWorkflow } from '../../db/workflows/workflows.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import type { Definition, ScheduleSpec } from '../../workflows/language/definition.ts'
import { testActor } from './database.ts'
import { until } from './until.ts'
import type { WorkerSuite } from './with-worker.ts'

/** Scheduled workflows in a suite with a worker. */
export function schedulesOf(suite: WorkerSuite) {
  const tenant = <T>(work: (tx: Tenant) => Promise<T>) =>
    suite.db.tenant(suite.organizationId, testActor, work)
  const handleOf = (id: string) => suite.worker.client.schedule.getHandle(`schedule:${id}`)
  /** Waits until Temporal has every change of the workflow. */
  const synced = (id: string) =>
    until(async () => {
      const row = await suite.db.system('workflow_schedules').where({ workflow_id: id }).first()
      return !row || row.synced === row.revision
    }, 'Temporal to be told')
  const fireAt = (id: string, scheduledAt: string): Promise<Fire | undefined> =>
    suite.db.system('schedule_fires').where({ workflow_id: id, scheduled_at: scheduledAt }).first()

  return {
    tenant,
    handleOf,
    synced,
    fireAt,
    /** Activates a workflow whose runs stay open until they are cancelled, or end at once. */
    async scheduled(
      schedule: Partial<ScheduleSpec>,
      { open = true, settings = {} }: { open?: boolean; settings?: Definition['settings'] } = {},
    ): Promise<string> {
      const definition: Definition = {
        name: 'Scheduled',
        trigger: { type: 'schedule', timezone: 'UTC', ...schedule },
        inputs: {},
        nodes: [
          open
            ? { id: 'wait', type: 'delay', config: { for: '1d' } }
            : { id: 'stop', type: 'stop', config: {} },
        ],
        edges: [],
        outputs: {},
        settings,
      }
      const content = { spec: null, definition, program: compile(definition) }
      const { id } = await tenant((tx) =>
        createWorkflow(tx, { name: definition.name, description: null, ...content }),
      )
      await tenant((tx) => activate(tx, id))
      await synced(id)
      return id
    },
    /** Lets Temporal fire a past time of the schedule. @returns what became of it. */
    async fire(id: string, scheduledAt: string): Promise<Fire> {
      const start = new Date(Date.parse(scheduledAt) - 1_000)
      await handleOf(id).backfill({
        start,
        end: new Date(scheduledAt),
        overlap: ScheduleOverlapPolicy.ALLOW_ALL,
      })
      return until(() => fireAt(id, scheduledAt), `the time ${scheduledAt}`)
    },
  }
}
