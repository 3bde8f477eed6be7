import { z } from 'zod'
import { actor } from '../../db/model/records/schemas.ts'
import { listCustomFields } from '../../db/records/custom-fields/definitions.ts'
import { getVersion, listVersions, type Version, type VersionSummary } from '../../db/workflows/versions.ts'
import { createWorkflow, getWorkflow } from '../../db/workflows/workflows.ts'
import { CHANGE_KINDS, compareDefinitions, summaryOf } from '../../workflows/authoring/compare-definitions.ts'
import { ifMatch } from '../http/if-match.ts'
import { integer, listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { withETag } from './record-shapes.ts'
import { saveVersion } from './save-version.ts'
import { unknownNames } from './unknown-names.ts'
import { compiled, withName } from './version-content.ts'
import { presentWorkflow, savedShape } from './workflow-shapes.ts'

/** The saved versions of a workflow: lists, differences, restores, and copies. */

const ofWorkflow = z.object({ workflow_id: z.uuid() })
const versionNumber = integer(1, 999_999_999)
const ofVersion = z.object({
  workflow_id: z.uuid(),
  version: versionNumber.describe('The number of the version.'),
})

const versionSummary = z
  .object({
    object: z.literal('workflow_version'),
    workflow_id: z.uuid(),
    version: z.int(),
    active: z.boolean().meta({ description: 'Whether triggers start it.' }),
    summary: z
      .string()
      .nullable()
      .meta({
        description: 'What changed since the version before; null for the first.',
        examples: ['adds ship; changes save, trigger'],
      }),
    restored_from: z
      .int()
      .nullable()
      .meta({ description: 'The version that was restored; null if none was.' }),
    created_by: actor
      .extend({ name: z.string().nullable() })
      .meta({ id: 'NamedActor', description: 'Who saved it, with the current name of the user or key.' }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'WorkflowVersionSummary' })

const versionShape = versionSummary
  .extend({
    spec: z
      .string()
      .nullable()
      .meta({ description: 'The YAML as saved; null for a raw definition that is too large for a spec.' }),
    definition: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'WorkflowVersion' })

const change = z
  .object({
    path: z.string().meta({
      description:
        'A JSON Pointer. `/next/<handle>` of a node is the list of the nodes that the handle leads to.',
    }),
    kind: z.enum(CHANGE_KINDS).meta({
      description: '`reordered`: only the order changed; `before` and `after` list the names.',
    }),
    before: z.unknown().optional(),
    after: z.unknown().optional(),
  })
  .meta({ id: 'ValueChange' })
const named = z.object({ node_id: z.string(), type: z.string() })

const diffShape = z
  .object({
    object: z.literal('workflow_diff'),
    workflow_id: z.uuid(),
    version: z.int(),
    against: z.int().nullable().meta({ description: 'The earlier side; null for the first version.' }),
    summary: z.string().meta({ description: 'Empty if the definitions are equal.' }),
    text: z.string().nullable().meta({
      description:
        'A unified diff of the YAML, empty if it is equal; null if one of the versions has no YAML, or too many lines differ.',
    }),
    nodes: z.object({
      added: z.array(named),
      removed: z.array(named),
      changed: z.array(z.object({ node_id: z.string(), changes: z.array(change) })),
    }),
    others: z.array(change).meta({
      description: 'Changes outside of nodes. `/nodes`: the order of the nodes that both versions have.',
    }),
  })
  .meta({ id: 'WorkflowDiff' })

export const workflowVersionRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/workflows/{workflow_id}/versions',
    scope: 'workflows:read',
    id: 'listWorkflowVersions',
    tag: 'Workflows',
    summary: 'List the versions of a workflow',
    description:
      'Newest first: who saved each version, when, and what changed. Versions are kept with the workflow.',
    params: ofWorkflow,
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(versionSummary) },
    handler: async ({ params: { workflow_id }, query, tenant }) => {
      const page = await tenant((tx) => listVersions(tx, workflow_id, { ...query, offset: offsetOf(query) }))
      return presentList({ ...page, data: page.data.map((row) => presentVersion(workflow_id, row)) })
    },
  }),
  route({
    method: 'GET',
    path: '/workflows/{workflow_id}/versions/{version}',
    scope: 'workflows:read',
    id: 'getWorkflowVersion',
    tag: 'Workflows',
    summary: 'Retrieve a version of a workflow',
    description: 'Returns the YAML and the definition as saved.',
    params: ofVersion,
    response: { status: 200, schema: versionShape },
    handler: async ({ params: { workflow_id, version }, tenant }) => {
      const row = await tenant((tx) => getVersion(tx, workflow_id, version))
      const { spec, definition } = row
      return { ...presentVersion(workflow_id, row), spec, definition }
    },
  }),
  route({
    method: 'GET',
    path: '/workflows/{workflow_id}/versions/{version}/diff',
    scope: 'workflows:read',
    id: 'diffWorkflowVersions',
    tag: 'Workflows',
    summary: 'Compare two versions of a workflow',
    description:
      'What changed from the version before, or from `against`, to this version: as a unified diff of the YAML, and by node. The first version is compared with nothing.',
    params: ofVersion,
    query: z.strictObject({
      against: versionNumber.optional().describe('The version to compare with, also a newer one.'),
    }),
    response: { status: 200, schema: diffShape },
    handler: async ({ params: { workflow_id, version }, query, caller, deps, tenant }) => {
      const against = query.against ?? version - 1
      const [before, after] = await tenant(async (tx) => [
        against === 0 ? undefined : await getVersion(tx, workflow_id, against),
        await getVersion(tx, workflow_id, version),
      ])
      const changes = compareDefinitions(before?.definition, after!.definition)
      const text = before ? before.spec : ''
      const diff =
        text === null || after!.spec === null
          ? undefined
          : await deps.compute.diffTexts(
              caller.organization.id,
              { name: before ? `version ${against}` : '/dev/null', text },
              { name: `version ${version}`, text: after!.spec },
            )
      return {
        object: 'workflow_diff',
        workflow_id,
        version,
        against: before ? against : null,
        summary: summaryOf(changes),
        text: diff ?? null,
        ...changes,
      }
    },
  }),
  route({
    method: 'POST',
    path: '/workflows/{workflow_id}/versions/{version}/restore',
    scope: 'workflows:author',
    id: 'restoreWorkflowVersion',
    grows: true,
    tag: 'Workflows',
    summary: 'Restore a version of a workflow',
    description:
      'Saves the content of a version as the next version, validated as of today: errors are refused with `workflow_invalid`. Like any save, it leaves the active version as it is until the next activation.',
    params: ofVersion,
    response: { status: 200, schema: savedShape },
    etag: true,
    ifMatch: true,
    handler: async (request) => {
      const { workflow_id, version } = request.params
      const { spec, definition } = await request.tenant((tx) => getVersion(tx, workflow_id, version))
      const { row, warnings } = await saveVersion(request, workflow_id, {
        source: spec === null ? { definition: { ...definition } } : { spec },
        accepted: ifMatch(request.headers),
        restored_from: version,
      })
      return { ...withETag(request.setHeader, presentWorkflow(row)), warnings }
    },
  }),
  route({
    method: 'POST',
    path: '/workflows/{workflow_id}/duplicate',
    scope: 'workflows:author',
    id: 'duplicateWorkflow',
    grows: true,
    tag: 'Workflows',
    summary: 'Duplicate a workflow',
    description:
      'Saves a version of a workflow, by default the newest, as a new workflow: a DRAFT with its YAML and comments, without its versions, samples and runs. It is validated as of today: errors are refused with `workflow_invalid`.',
    params: ofWorkflow,
    body: z
      .strictObject({
        name: z.string().trim().min(1).max(200).optional().describe('Default: `Copy of` and the name.'),
        version: z.int().min(1).max(999_999_999).optional(),
      })
      .prefault({})
      .meta({ id: 'WorkflowDuplicate' }),
    example: { name: 'Greet again' },
    response: { status: 201, schema: savedShape },
    etag: true,
    handler: async ({ params, body, caller, deps, tenant, setHeader }) => {
      const { workflow, version } = await tenant(async (tx) => {
        const workflow = await getWorkflow(tx, params.workflow_id)
        return { workflow, version: await getVersion(tx, workflow.id, body.version ?? workflow.version) }
      })
      const name = body.name ?? `Copy of ${workflow.name}`.slice(0, 200)
      // The newest version can have an older description than the workflow.
      const { description = null } = body.version === undefined ? workflow : version.definition
      const definition = { ...version.definition, name, description: description ?? undefined }
      const { content, warnings, references } = await compiled(
        { caller, deps, tenant },
        { definition, customFields: await tenant(listCustomFields) },
        { base: version.spec },
      )
      const { row, unknown } = await tenant(async (tx) => ({
        unknown: await unknownNames(tx, references, { ...deps.config }),
        row: await createWorkflow(tx, {
          ...withName(content, name),
          name,
          description,
          duplicated_from: workflow.id,
        }),
      }))
      return { ...withETag(setHeader, presentWorkflow(row)), warnings: [...warnings, ...unknown] }
    },
  }),
]

function presentVersion(workflow_id: string, row: VersionSummary | Version) {
  const { version, active, summary, restored_from, created_by, created_at } = row
  return {
    object: 'workflow_version' as const,
    workflow_id,
    version,
    active,
    summary,
    restored_from,
    created_by,
    created_at: created_at.toISOString(),
  }
}
