import { z } from 'zod'
import { listWorkflows } from '../../db/workflows/list.ts'
import {
  activate,
  createWorkflow,
  deactivate,
  deleteWorkflow,
  getWorkflow,
  lockWorkflow,
  updateWorkflow,
  WORKFLOW_STATUSES,
} from '../../db/workflows/workflows.ts'
import type { Finding } from '../../workflows/definition/types.ts'
import { type Validated, validateDefinition, validateSpec } from '../../workflows/definition/validate.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { tagged } from './objects.ts'
import { validationContext } from './validation-context.ts'
import { checked, keepName, retitled, saidBy } from './version-content.ts'
import {
  presentSummary,
  presentWorkflow,
  savedShape,
  summaryShape,
  validation,
  workflowShape,
} from './workflow-shapes.ts'

const params = z.object({ workflow_id: z.uuid() })
const spec = z.string().meta({ description: 'The authoring spec, YAML; at most 256 KiB' })
const rawDefinition = z.record(z.string(), z.unknown()).meta({ description: 'nodes and edges' })
const name = z.string().trim().min(1).max(200)
const description = z.string().max(5_000)

const example = `name: Greet
inputs: {email: string}
nodes:
  save:
    type: crm_manager
    config: {operation: upsert, entity: contacts, by: email, fields: {email: "{{ inputs.email }}"}}
outputs: {contact_id: "{{ nodes.save.output.record.id }}"}
`

export const workflowRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/workflows/validate',
    scope: 'workflows:read',
    id: 'validateWorkflow',
    tag: 'Workflows',
    summary: 'Check a workflow without saving it',
    description:
      'Takes a YAML spec, a raw definition, or both, and reports everything at once. What does not even parse is 200 with valid: false.',
    idempotent: false,
    body: z
      .strictObject({ spec: spec.optional(), definition: rawDefinition.optional() })
      .refine((body) => body.spec !== undefined || body.definition !== undefined, {
        message: 'give spec, definition or both',
        params: { type: 'missing' },
      }),
    response: { status: 200, schema: validation },
    example: { spec: example },
    handler: async ({ body }) => {
      const both = body.spec !== undefined && body.definition !== undefined
      const context = validationContext()
      const results = [
        ...(body.spec === undefined ? [] : [from('spec', validateSpec(body.spec, context), both)]),
        ...(body.definition === undefined
          ? []
          : [from('definition', validateDefinition(body.definition, context), both)]),
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
    tag: 'Workflows',
    summary: 'Create a workflow',
    description:
      'Validates the spec and saves it as a draft. Blocking errors are refused with workflow_invalid, and listed in error.validation. A workflow acts for the organization, not for the key that starts it.',
    body: z.strictObject({ spec, name: name.optional(), description: description.optional() }),
    response: { status: 201, schema: savedShape },
    example: { spec: example },
    etag: true,
    handler: async ({ body, tenant, setHeader }) => {
      const { content, warnings } = checked({ spec: body.spec })
      const { definition } = content
      const row = await tenant((tx) =>
        createWorkflow(tx, {
          ...content,
          name: body.name ?? definition.name,
          description: body.description ?? definition.description ?? null,
        }),
      )
      return { ...tagged(setHeader, presentWorkflow(row)), warnings }
    },
  }),
  route({
    method: 'GET',
    path: '/workflows',
    scope: 'workflows:read',
    id: 'listWorkflows',
    tag: 'Workflows',
    summary: 'List workflows',
    description:
      'Newest first, without specs and definitions. active=false lists what is not active, drafts included.',
    query: z.strictObject({
      active: z.stringbool({ truthy: ['true'], falsy: ['false'] }).optional(),
      status: z.enum(WORKFLOW_STATUSES).optional(),
      name: z.string().optional(),
      q: z.string().max(200).optional(),
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
    summary: 'One workflow',
    description: 'With the newest version, as YAML where it was saved so, and as a definition.',
    params,
    response: { status: 200, schema: workflowShape },
    etag: true,
    handler: async ({ params, tenant, setHeader }) =>
      tagged(setHeader, presentWorkflow(await tenant((tx) => getWorkflow(tx, params.workflow_id)))),
  }),
  route({
    method: 'PATCH',
    path: '/workflows/{workflow_id}',
    scope: 'workflows:author',
    id: 'updateWorkflow',
    tag: 'Workflows',
    summary: 'Change a workflow',
    description:
      'A spec or a raw definition makes the next version. Triggers keep the active version until the next activation; runs keep the version that they started with. A spec that names or describes the workflow otherwise than the version before renames it; a name or description given here is the workflow’s own, which the definition then says too, while the text of the spec stays as it was written. With If-Match and the ETag that was read, a version that came in between is answered 412.',
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
        message: 'give spec or definition, not both',
      }),
    example: { name: 'Greet a lead', spec: example },
    response: { status: 200, schema: savedShape },
    etag: true,
    ifMatch: true,
    handler: async ({ params, body, headers, tenant, setHeader }) => {
      const accepted = ifMatch(headers)
      const saved = body.spec === undefined && body.definition === undefined ? undefined : checked(body)
      const row = await tenant(async (tx) => {
        const before = await lockWorkflow(tx, params.workflow_id, accepted)
        const said = saved ? saidBy(body, saved.content) : {}
        const { name, description } = body
        return updateWorkflow(tx, before, {
          ...retitled(said, before),
          ...(name === undefined ? {} : { name }),
          ...(description === undefined ? {} : { description }),
          ...(saved ? { content: keepName(saved.content, said.name ?? before.definition.name) } : {}),
        })
      })
      return { ...tagged(setHeader, presentWorkflow(row)), warnings: saved?.warnings ?? [] }
    },
  }),
  route({
    method: 'DELETE',
    path: '/workflows/{workflow_id}',
    scope: 'workflows:author',
    id: 'deleteWorkflow',
    tag: 'Workflows',
    summary: 'Delete a workflow',
    description: 'Nothing starts it any more; runs that are under way go on to their end.',
    params,
    response: {
      status: 200,
      schema: z.object({
        object: z.literal('workflow'),
        workflow_id: z.uuid(),
        deleted: z.literal(true),
        deleted_at: z.iso.datetime(),
      }),
    },
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
  ...(['activate', 'deactivate'] as const).map((action) =>
    route({
      method: 'POST',
      path: `/workflows/{workflow_id}/${action}`,
      scope: 'workflows:author',
      id: `${action}Workflow`,
      tag: 'Workflows',
      summary: action === 'activate' ? 'Activate a workflow' : 'Deactivate a workflow',
      description:
        action === 'activate'
          ? 'From now on triggers start the newest version.'
          : 'From now on triggers start nothing; it can still be run by name or id. A draft stays a draft.',
      params,
      response: { status: 200, schema: workflowShape },
      etag: true,
      handler: async ({ params, tenant, setHeader }) =>
        tagged(
          setHeader,
          presentWorkflow(
            await tenant((tx) => (action === 'activate' ? activate : deactivate)(tx, params.workflow_id)),
          ),
        ),
    }),
  ),
]

function from(source: 'spec' | 'definition', { result }: Validated, both: boolean) {
  const marked = (findings: Finding[]) => (both ? findings.map((found) => ({ ...found, source })) : findings)
  return { valid: result.valid, errors: marked(result.errors), warnings: marked(result.warnings) }
}
