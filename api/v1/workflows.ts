import { z } from 'zod'
import { conflict } from '../../db/model/errors.ts'
import { listCustomFields } from '../../db/records/custom-fields/definitions.ts'
import { type BatchRequest, createBatch } from '../../db/runs/batches.ts'
import { listWorkflows } from '../../db/workflows/list.ts'
import {
  activate,
  createWorkflow,
  deactivate,
  deleteWorkflow,
  getWorkflow,
  lockWorkflow,
  WORKFLOW_STATUSES,
} from '../../db/workflows/workflows.ts'
import type { Finding, ValidationResult } from '../../workflows/language/definition.ts'
import { EXAMPLE_SPEC } from '../../workflows/nodes/example-spec.ts'
import type { Source } from '../compute/tasks.ts'
import { DELETED_AT, deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { validated } from './known-values.ts'
import { missingFor } from './preconditions.ts'
import { withETag } from './record-shapes.ts'
import { saveVersion } from './save-version.ts'
import { namesOthers, unknownNames, withUnknownNames } from './unknown-names.ts'
import { compiled } from './version-content.ts'
import {
  presentSummary,
  presentWorkflow,
  savedShape,
  summaryShape,
  validation,
  workflowShape,
} from './workflow-shapes.ts'

const params = z.object({ workflow_id: z.uuid() })
const spec = z.string().meta({ description: 'The authoring spec in YAML, at most 256 KiB.' })
const rawDefinition = z
  .record(z.string(), z.unknown())
  .meta({ description: 'The raw definition: nodes and edges.' })
const name = z.string().trim().min(1).max(200)
const description = z.string().max(5_000)

export const workflowRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/workflows/validate',
    scope: 'workflows:read',
    id: 'validateWorkflow',
    tag: 'Workflows',
    summary: 'Validate a workflow',
    description:
      'Validates a YAML spec, a raw definition, or both, without saving. Reports all errors and warnings. A spec that does not parse is a 200 with `valid: false`.',
    idempotent: false,
    body: z
      .strictObject({ spec: spec.optional(), definition: rawDefinition.optional() })
      .refine((body) => body.spec !== undefined || body.definition !== undefined, {
        message: 'send spec, definition or both',
        params: { type: 'missing' },
      })
      .meta({ id: 'ValidationRequest' }),
    response: { status: 200, schema: validation },
    example: { spec: EXAMPLE_SPEC },
    handler: async ({ body: { spec, definition }, caller, deps, tenant }) => {
      const both = spec !== undefined && definition !== undefined
      const customFields = await tenant(listCustomFields)
      const validate = async (source: Source): Promise<ValidationResult> => {
        const { result, references } = await validated({ caller, deps, tenant }, { ...source, customFields })
        if (!namesOthers(references)) return result
        return tenant((tx) => withUnknownNames(tx, result, references, { ...deps.config }))
      }
      const results = [
        ...(spec === undefined ? [] : [from('spec', await validate({ spec }), both)]),
        ...(definition === undefined ? [] : [from('definition', await validate({ definition }), both)]),
      ]
      return {
        object: 'validation',
        valid: results.every(({ valid }) => valid),
        errors: results.flatMap(({ errors }) => errors),
        warnings: results.flatMap(({ warnings }) => warnings),
      }
    },
  }),
  route({
    method: 'POST',
    path: '/workflows',
    scope: 'workflows:author',
    id: 'createWorkflow',
    grows: true,
    tag: 'Workflows',
    summary: 'Create a workflow',
    description:
      'Validates the spec and saves it as a DRAFT. Errors are refused with `workflow_invalid` and listed in `error.validation`. A workflow acts for the organization, not for the key that starts it.',
    body: z
      .strictObject({ spec, name: name.optional(), description: description.optional() })
      .meta({ id: 'WorkflowCreate' }),
    response: { status: 201, schema: savedShape },
    example: { spec: EXAMPLE_SPEC },
    etag: true,
    handler: async ({ body, caller, deps, tenant, setHeader }) => {
      const { spec } = body
      const { content, warnings, references } = await compiled(
        { caller, deps, tenant },
        { spec, customFields: await tenant(listCustomFields) },
      )
      const { definition } = content
      const { row, unknown } = await tenant(async (tx) => ({
        unknown: await unknownNames(tx, references, { ...deps.config }),
        row: await createWorkflow(tx, {
          ...content,
          name: body.name ?? definition.name,
          description: body.description ?? definition.description ?? null,
        }),
      }))
      return { ...withETag(setHeader, presentWorkflow(row)), warnings: [...warnings, ...unknown] }
    },
  }),
  route({
    method: 'GET',
    path: '/workflows',
    scope: 'workflows:read',
    id: 'listWorkflows',
    tag: 'Workflows',
    summary: 'List workflows',
    description: 'Newest first, without specs and definitions. `active=false` also lists drafts.',
    query: z.strictObject({
      active: z
        .stringbool({ truthy: ['true'], falsy: ['false'] })
        .optional()
        .describe('Whether the workflow is active.')
        .meta({ type: 'boolean' }),
      status: z.enum(WORKFLOW_STATUSES).optional().describe('Workflows with this status.'),
      name: z.string().optional().describe('Workflows with exactly this name.'),
      q: z.string().max(200).optional().describe('A part of the name or description.'),
      ...pageControls,
    }),
    response: { status: 200, schema: listEnvelope(summaryShape) },
    handler: async ({ query, tenant }) => {
      const page = await tenant((tx) => listWorkflows(tx, { ...query, offset: offsetOf(query) }))
      return presentList({ ...page, data: page.data.map(presentSummary) })
    },
  }),
  route({
    method: 'GET',
    path: '/workflows/{workflow_id}',
    scope: 'workflows:read',
    id: 'getWorkflow',
    tag: 'Workflows',
    summary: 'Retrieve a workflow',
    description: 'Returns the newest version as a definition and as YAML.',
    params,
    response: { status: 200, schema: workflowShape },
    etag: true,
    handler: async ({ params, tenant, setHeader }) =>
      withETag(setHeader, presentWorkflow(await tenant((tx) => getWorkflow(tx, params.workflow_id)))),
  }),
  route({
    method: 'PATCH',
    path: '/workflows/{workflow_id}',
    scope: 'workflows:author',
    id: 'updateWorkflow',
    grows: true,
    tag: 'Workflows',
    summary: 'Update a workflow',
    description:
      'A spec or a raw definition creates the next version. Triggers keep the active version until the next activation; runs keep the version that they started with. `name` and `description` override those of the spec; the text of the spec is not changed. Without them, a spec with another name or description than the previous version renames the workflow. A raw definition is also written as YAML: what means the same as in the previous version keeps its text and comments.',
    params,
    body: z
      .strictObject({
        name: name.optional(),
        description: description.nullable().optional(),
        spec: spec.optional(),
        definition: rawDefinition.optional(),
      })
      .refine((body) => body.spec === undefined || body.definition === undefined, {
        path: ['definition'],
        message: 'send spec or definition, not both',
      })
      .meta({ id: 'WorkflowUpdate' }),
    example: { name: 'Greet a lead', spec: EXAMPLE_SPEC },
    response: { status: 200, schema: savedShape },
    etag: true,
    ifMatch: true,
    handler: async (request) => {
      const { spec, definition, name, description } = request.body
      const { row, warnings } = await saveVersion(request, request.params.workflow_id, {
        source: { spec, definition },
        name,
        description,
        accepted: ifMatch(request.headers),
      })
      return { ...withETag(request.setHeader, presentWorkflow(row)), warnings }
    },
  }),
  route({
    method: 'DELETE',
    path: '/workflows/{workflow_id}',
    scope: 'workflows:author',
    id: 'deleteWorkflow',
    tag: 'Workflows',
    summary: 'Delete a workflow',
    description: 'The workflow can no longer be started. Open runs continue to their end.',
    params,
    response: deletion('workflow', { workflow_id: z.uuid(), ...DELETED_AT }),
    ifMatch: true,
    handler: async ({ params, headers, tenant }) => {
      const accepted = ifMatch(headers)
      const deletedAt = await tenant(async (tx) => {
        await lockWorkflow(tx, params.workflow_id, accepted)
        return deleteWorkflow(tx, params.workflow_id)
      })
      return {
        object: 'workflow',
        workflow_id: params.workflow_id,
        deleted: true,
        deleted_at: deletedAt.toISOString(),
      }
    },
  }),
  route({
    method: 'POST',
    path: '/workflows/{workflow_id}/activate',
    scope: 'workflows:author',
    id: 'activateWorkflow',
    tag: 'Workflows',
    summary: 'Activate a workflow',
    description:
      'Triggers start the newest version from now on. If it needs what is not there (secrets, environment variables, workflows, worker pools, settings of the service such as its mail server, custom fields), it is not activated: 409 with all that is missing in `error.missing`.',
    params,
    body: z
      .strictObject({
        allow_missing: z
          .boolean()
          .default(false)
          .describe('Activate it anyway: the nodes that need what is missing fail until it is there.'),
      })
      .prefault({})
      .meta({ id: 'WorkflowActivation' }),
    example: {},
    response: { status: 200, schema: workflowShape },
    etag: true,
    handler: async ({ params, body, deps, tenant, setHeader }) => {
      const row = await tenant(async (tx) => {
        const { definition } = await lockWorkflow(tx, params.workflow_id, undefined)
        const missing = body.allow_missing ? [] : await missingFor(tx, definition, deps.config)
        if (missing.length > 0) throw notReady(missing)
        return activate(tx, params.workflow_id)
      })
      return withETag(setHeader, presentWorkflow(row))
    },
  }),
  route({
    method: 'POST',
    path: '/workflows/{workflow_id}/deactivate',
    scope: 'workflows:author',
    id: 'deactivateWorkflow',
    tag: 'Workflows',
    summary: 'Deactivate a workflow',
    description:
      'Triggers no longer start the workflow. It can still be run by name or id. A draft stays a draft. Its queued runs start as before, unless `cancel_queued` is true.',
    params,
    body: z
      .strictObject({
        cancel_queued: z
          .boolean()
          .default(false)
          .describe(
            'Cancel the runs that are queued now, as a batch of runs: the response has its `run_batch_id`. It requires `workflows:run`.',
          ),
      })
      .meta({ id: 'WorkflowDeactivation' })
      .default({ cancel_queued: false }),
    response: {
      status: 200,
      schema: workflowShape.and(
        z.object({
          run_batch_id: z
            .uuid()
            .optional()
            .meta({ description: 'With `cancel_queued`: the batch that cancels the queued runs.' }),
        }),
      ),
    },
    etag: true,
    example: { cancel_queued: true },
    handler: async ({ params: { workflow_id }, body, tenant, setHeader, requireScopes }) => {
      if (body.cancel_queued) requireScopes(['workflows:run'])
      const { row, batchId } = await tenant(async (tx) => ({
        row: await deactivate(tx, workflow_id),
        batchId: body.cancel_queued ? await createBatch(tx, queuedRunsOf(workflow_id)) : undefined,
      }))
      return {
        ...withETag(setHeader, presentWorkflow(row)),
        ...(batchId !== undefined && { run_batch_id: batchId }),
      }
    },
  }),
]

const queuedRunsOf = (workflow_id: string) =>
  ({
    action: 'cancel',
    filter: { workflow_id, status: ['queued'] },
    options: { version: 'same' },
  }) satisfies BatchRequest

function notReady(missing: Finding[]) {
  const [first] = missing
  const others = missing.length > 1 ? `; and ${missing.length - 1} more` : ''
  return conflict(`the workflow is not ready: ${first!.message}${others}`, {
    hint: `${first!.hint}; or activate it anyway with {"allow_missing": true}`,
    missing,
  })
}

function from(source: 'spec' | 'definition', result: ValidationResult, both: boolean) {
  const marked = (findings: Finding[]) => (both ? findings.map((found) => ({ ...found, source })) : findings)
  return { valid: result.valid, errors: marked(result.errors), warnings: marked(result.warnings) }
}
