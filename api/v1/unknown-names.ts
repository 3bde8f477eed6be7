import type { Tenant } from '../../db/postgres/tenancy.ts'
import { countWorkflows } from '../../db/workflows/list.ts'
import type { Finding, WorkflowReference } from '../../workflows/definition/types.ts'

/** Warnings about the workflows that a definition names: those that do not exist yet, and names that several have. */
export async function unknownWorkflows(tx: Tenant, references: WorkflowReference[]): Promise<Finding[]> {
  if (references.length === 0) return []
  const names = references.map(({ workflow }) => workflow)
  const counts = await countWorkflows(tx, names)
  return references.flatMap(({ workflow, ...place }): Finding[] => {
    const count = counts.get(workflow) ?? 0
    if (count === 1) return []
    const shown = JSON.stringify(workflow)
    return [
      {
        code: 'unknown_workflow',
        ...(count === 0
          ? {
              message: `there is no workflow ${shown} yet`,
              hint: 'create it, or write the exact name or the id of another workflow',
            }
          : { message: `${count} workflows are named ${shown}`, hint: 'write the id of one of them' }),
        ...place,
      },
    ]
  })
}
