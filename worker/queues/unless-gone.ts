import { WorkflowNotFoundError } from '@temporalio/client'
import type { System } from '../../db/postgres/tenancy.ts'
import { lookUpSoon } from '../../db/runs/queue.ts'

/** Makes a call to a workflow, which may have ended: then nothing of it needs the call. */
export async function unlessGone(
  call: Promise<unknown>,
  whenGone: () => Promise<void> = async () => {},
): Promise<void> {
  await call.catch((error: unknown) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error
    return whenGone()
  })
}

/**
 * Makes a call to the workflow of a run. If Temporal has lost it, the run continues in a new one, whose first segment
 * reads what it should have been told.
 */
export const tellRun = (
  system: System,
  run: { organization_id: string; id: string },
  call: Promise<unknown>,
): Promise<void> => unlessGone(call, () => lookUpSoon(system, run))
