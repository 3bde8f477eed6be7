import { createOrganization, type TestDatabase, testActor } from './database.ts'
import { createEmptyWorkflow } from './workflows.ts'

/**
 * A new organization with `count` running runs of one workflow that does nothing. `id`, `updatedAt` and `sleepsUntil`
 * are SQL expressions, in which `i` is the number of the run.
 */
export async function insertManyRuns(
  db: TestDatabase,
  count: number,
  values: { sleepsUntil: string; id?: string; updatedAt?: string },
) {
  const organizationId = await createOrganization(db)
  const workflow = await db.tenant(organizationId, testActor, (tx) => createEmptyWorkflow(tx))
  const { id = 'gen_random_uuid()', updatedAt = 'now()', sleepsUntil } = values
  await db.asOwner((client) =>
    client.query(
      `insert into runs (organization_id, id, workflow_id, workflow_version, workflow_name, status, trigger, inputs,
         temporal_run_id, started_at, updated_at, sleeps_until, checked)
       select $1, ${id}, $2, 1, 'Test', 'running', '{}', '{}', 'a', now(), ${updatedAt}, ${sleepsUntil}, true
       from generate_series(1, $3::integer) i`,
      [organizationId, workflow.id, count],
    ),
  )
  return { organizationId, workflow }
}
