import { z } from 'zod'
import { WORKFLOW_STATUSES, type Workflow, type WorkflowSummary } from '../../db/workflows/workflows.ts'

/** The shapes of workflows and findings. */

const time = z.iso.datetime()

export const finding = z
  .object({
    code: z.string().meta({
      description:
        'A stable code, such as `unknown_node_type`. [Their meanings and corrections](/docs/findings).',
    }),
    message: z.string(),
    path: z.string().meta({ description: 'A JSON Pointer into the spec or the definition.' }),
    line: z.int().optional().meta({ description: 'The line, from 1. YAML only.' }),
    column: z.int().optional(),
    node_id: z.string().optional(),
    hint: z.string().optional(),
    source: z.enum(['spec', 'definition']).optional(),
  })
  .meta({ id: 'Finding' })

export const validation = z
  .object({
    object: z.literal('validation'),
    valid: z.boolean(),
    errors: z.array(finding),
    warnings: z.array(finding),
  })
  .meta({ id: 'Validation' })

export const summaryShape = z
  .object({
    object: z.literal('workflow'),
    workflow_id: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    status: z.enum(WORKFLOW_STATUSES),
    active: z.boolean(),
    version: z.int().meta({ description: 'The newest version.' }),
    active_version: z.int().nullable().meta({ description: 'The version that triggers start.' }),
    trigger: z.record(z.string(), z.unknown()),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'WorkflowSummary' })

/** Why the trigger last failed to start a run. */
export const triggerProblem = z
  .object({
    message: z.string(),
    event: z.string().optional(),
    event_id: z.uuid().optional(),
    at: time,
    count: z.int().meta({ description: 'The problems since the activation.' }),
  })
  .nullable()
  .meta({
    description:
      'The last error with which the trigger of the active version failed to start a run: its `when` could not be rendered for an event, or Temporal refused its schedule. null if it has not failed since the activation.',
  })

export const workflowShape = summaryShape
  .extend({
    spec: z.string().nullable().meta({
      description:
        'The YAML, with its comments; null for a raw definition that is larger as YAML than a spec may be.',
    }),
    definition: z.record(z.string(), z.unknown()),
    trigger_problem: triggerProblem,
  })
  .meta({ id: 'Workflow' })

export const savedShape = workflowShape.extend({ warnings: z.array(finding) }).meta({ id: 'SavedWorkflow' })

export function presentSummary(row: WorkflowSummary) {
  const { id, name, description, status, version, active_version, trigger } = row
  return {
    object: 'workflow' as const,
    workflow_id: id,
    name,
    description,
    status,
    active: status === 'active',
    version,
    active_version,
    trigger,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

export const presentWorkflow = (row: Workflow) => ({
  ...presentSummary(row),
  spec: row.spec,
  definition: withCurrentTitle(row),
  trigger_problem: row.trigger_problem,
})

/** The definition with the current name and description of the workflow, which can be newer than the version. */
function withCurrentTitle({ definition, name, description }: Workflow) {
  const { description: _, ...rest } = definition
  return { ...rest, name, ...(description === null ? {} : { description }) }
}
