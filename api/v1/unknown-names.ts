import { getWorkflowSettings } from '../../db/access/organization.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { countWorkflows } from '../../db/workflows/list.ts'
import type {
  Finding,
  OutsideReferences,
  SettingReference,
  WorkflowReference,
} from '../../workflows/language/definition.ts'
import { didYouMean } from '../../workflows/language/problems.ts'

/** Warnings about names in a definition that the organization does not have yet. */
export async function unknownNames(tx: Tenant, references: OutsideReferences): Promise<Finding[]> {
  return [
    ...(await unknownWorkflows(tx, references.workflows)),
    ...(await unknownSettings(tx, references.settings)),
  ]
}

/** Workflows that do not exist, and ambiguous workflow names. */
async function unknownWorkflows(tx: Tenant, references: WorkflowReference[]): Promise<Finding[]> {
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

async function unknownSettings(tx: Tenant, references: SettingReference[]): Promise<Finding[]> {
  if (references.length === 0) return []
  const settings = await getWorkflowSettings(tx)
  const names = { secrets: settings.secrets, env: Object.keys(settings.env) }
  return references.flatMap(({ root, name, ...place }): Finding[] => {
    if (names[root].includes(name)) return []
    const shown = name.slice(0, 100)
    const { hint } = didYouMean(name, names[root])
    const unknown =
      root === 'secrets'
        ? {
            code: 'unknown_secret' as const,
            message: `there is no secret ${shown} yet: the node fails until it is set`,
            hint: hint ?? `set it: PUT /app/secrets/${shown}`,
          }
        : {
            code: 'unknown_env' as const,
            message: `there is no environment variable env.${shown} yet: nodes and triggers that read it fail until it is set`,
            hint: hint ?? `set it: PATCH /app/organization {"env": {"${shown}": …}}`,
          }
    return [{ ...unknown, ...place }]
  })
}
