import { z } from 'zod'
import { OUTCOMES, type Pipeline } from '../../db/model/records/pipelines/pipeline.ts'
import { PRESETS } from '../../db/model/records/pipelines/presets.ts'
import {
  createPipeline,
  deletePipeline,
  getPipeline,
  listPipelines,
  MAX_PIPELINES,
  updatePipeline,
} from '../../db/records/pipelines/pipelines.ts'
import { deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { withETag } from './record-shapes.ts'

const MAX_STAGES = 50

const name = z
  .string()
  .regex(
    /^[a-z][a-z0-9_]{0,62}$/,
    'must be lower-case letters, digits and underscores, such as contract_sent',
  )
const label = z.string().trim().min(1).max(100)
const isDefault = z
  .boolean()
  .describe('Whether deals without a `pipeline` go here: one in each organization.')

const stage = z.strictObject({
  name: name.optional().describe('The value of `stage` of deals. Default: made from the label.'),
  label: label.optional().describe('Default: the name.'),
  order: z.int().min(0).max(1_000).optional().describe('Default: the place in the list.'),
  probability: z
    .int()
    .min(0)
    .max(100)
    .optional()
    .describe('In percent. Default: 100 of a won stage, 0 of a lost one; an open one needs it.'),
  outcome: z.enum(OUTCOMES).optional().describe('How its deals stand. Default: open.'),
  required_fields: z
    .array(z.string().max(100))
    .max(50)
    .optional()
    .describe('Fields that a deal must have to enter the stage; `custom_fields.<name>` too.'),
})
const stages = z.array(stage).min(1).max(MAX_STAGES)

const newPipeline = z
  .strictObject({
    name: name
      .optional()
      .describe('The value of `pipeline` of deals; it cannot change. Default: from the label.'),
    label: label.optional(),
    is_default: isDefault.optional(),
    stages: stages.optional().describe('Either these or a preset.'),
    preset: z
      .enum(Object.keys(PRESETS) as [keyof typeof PRESETS])
      .optional()
      .describe('The stages that new organizations of this service, or of another one, begin with.'),
  })
  .meta({ id: 'PipelineCreate' })

const pipelinePatch = z
  .strictObject({
    label: label.optional(),
    is_default: isDefault.optional(),
    stages: stages
      .optional()
      .describe('All stages: one that is not named is removed. Members that a stage does not name stay.'),
    moves: z
      .record(z.string().max(100), z.string().max(100))
      .optional()
      .describe('The stages to which the deals of removed stages go: `{"lead": "qualified"}`.'),
  })
  .meta({ id: 'PipelineUpdate' })

const pipeline = z
  .object({
    object: z.literal('pipeline'),
    id: z.uuid(),
    name: z.string(),
    label: z.string(),
    is_default: z.boolean(),
    stages: z.array(
      z
        .object({
          name: z.string(),
          label: z.string(),
          order: z.int(),
          probability: z.int(),
          outcome: z.enum(OUTCOMES),
          required_fields: z.array(z.string()),
        })
        .meta({ id: 'Stage' }),
    ),
    version: z.int(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Pipeline' })

const tag = 'Pipelines'
const one = {
  tag,
  path: '/pipelines/{pipeline_id}',
  params: z.object({ pipeline_id: z.string().describe('The id or the name of the pipeline.') }),
}

/** The pipelines of deals. */
export const pipelineRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/pipelines',
    scope: 'deals:read',
    id: 'listPipelines',
    tag,
    summary: 'List pipelines',
    description: 'Lists all pipelines with their stages. A new organization has one, `default`.',
    response: { status: 200, schema: listEnvelope(pipeline) },
    handler: async ({ tenant }) => wholeList((await tenant(listPipelines)).map(present)),
  }),
  route({
    method: 'POST',
    path: '/pipelines',
    scope: 'deals:write',
    id: 'createPipeline',
    grows: true,
    tag,
    summary: 'Create a pipeline',
    description: `Defines a pipeline with at most ${MAX_STAGES} stages; an organization has at most ${MAX_PIPELINES} pipelines.`,
    body: newPipeline,
    response: { status: 201, schema: pipeline },
    example: {
      name: 'renewals',
      label: 'Renewals',
      stages: [
        { name: 'due', label: 'Due', probability: 60 },
        { name: 'offered', label: 'Offered', probability: 80, required_fields: ['amount'] },
        { name: 'renewed', label: 'Renewed', outcome: 'won' },
        { name: 'ended', label: 'Ended', outcome: 'lost' },
      ],
    },
    etag: true,
    handler: async ({ body, tenant, setHeader }) =>
      withETag(setHeader, present(await tenant((tx) => createPipeline(tx, body)))),
  }),
  route({
    ...one,
    method: 'GET',
    scope: 'deals:read',
    id: 'getPipeline',
    summary: 'Retrieve a pipeline',
    response: { status: 200, schema: pipeline },
    etag: true,
    handler: async ({ params, tenant, setHeader }) =>
      withETag(setHeader, present(await tenant((tx) => getPipeline(tx, params.pipeline_id)))),
  }),
  route({
    ...one,
    method: 'PATCH',
    scope: 'deals:write',
    id: 'updatePipeline',
    summary: 'Update a pipeline',
    description:
      'Absent members are unchanged. A stage with deals can be removed only if `moves` names where they go, and its outcome cannot change: else 409. Deals with the former probability of their stage get the new one. Each deal that changes gets a new version and raises its events.',
    body: pipelinePatch,
    response: { status: 200, schema: pipeline },
    example: { label: 'Renewals of the year' },
    etag: true,
    ifMatch: true,
    handler: async ({ params, body, headers, tenant, setHeader }) => {
      const ifVersion = ifMatch(headers)
      const after = await tenant((tx) => updatePipeline(tx, params.pipeline_id, body, ifVersion))
      return withETag(setHeader, present(after))
    },
  }),
  route({
    ...one,
    method: 'DELETE',
    scope: 'deals:write',
    id: 'deletePipeline',
    summary: 'Delete a pipeline',
    description:
      'A pipeline with deals can be deleted only if `move_to` names another one: each deal goes to the stage of the same name there, or else to the first one with the same outcome. The default pipeline cannot be deleted.',
    query: z.strictObject({
      move_to: z
        .string()
        .max(100)
        .optional()
        .describe('The name or id of the pipeline to which its deals go.'),
    }),
    response: deletion('pipeline'),
    ifMatch: true,
    handler: async ({ params, query, headers, tenant }) => {
      const how = { moveTo: query.move_to, ifVersion: ifMatch(headers) }
      const { id } = await tenant((tx) => deletePipeline(tx, params.pipeline_id, how))
      return { object: 'pipeline', id, deleted: true }
    },
  }),
]

const present = ({ stages, ...one }: Pipeline) => ({
  object: 'pipeline' as const,
  ...one,
  stages: stages.map((stage, index) => ({ ...stage, order: index + 1 })),
})
