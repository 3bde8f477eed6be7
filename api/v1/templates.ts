import { z } from 'zod'
import { notFound } from '../../db/model/errors.ts'
import { createWorkflow } from '../../db/workflows/workflows.ts'
import { nearest } from '../../workflows/shared/nearest.ts'
import { readTemplates, TEMPLATE_CATEGORIES, type Template } from '../../workflows/templates/index.ts'
import { listEnvelope, pageByName, pageControls, pageLimit, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { withETag } from './record-shapes.ts'
import { unmetRequirements } from './template-requirements.ts'
import { unknownNames } from './unknown-names.ts'
import { compiled } from './version-content.ts'
import { presentWorkflow, savedShape } from './workflow-shapes.ts'

const requirements = z
  .object({
    secrets: z.array(z.string()).meta({ description: 'Secrets of the organization, by name.' }),
    env: z
      .array(z.string())
      .meta({ description: 'Environment variables of the organization, which it reads as `env`.' }),
    custom_fields: z.array(
      z
        .object({ entity: z.string(), name: z.string(), type: z.string() })
        .meta({ id: 'TemplateCustomField' }),
    ),
    service_settings: z
      .array(z.string())
      .meta({ description: 'Environment variables of the service, such as those of its mail server.' }),
  })
  .meta({ id: 'TemplateRequirements' })

const summary = z
  .object({
    object: z.literal('template'),
    template_id: z.string(),
    name: z.string(),
    description: z.string(),
    category: z.enum(TEMPLATE_CATEGORIES),
    requires: requirements,
  })
  .meta({ id: 'TemplateSummary' })

const detail = summary
  .extend({ spec: z.string().meta({ description: 'The authoring spec in YAML.' }) })
  .meta({ id: 'Template' })

const facets = z
  .object({
    category: z
      .array(z.object({ value: z.enum(TEMPLATE_CATEGORIES), count: z.int() }).meta({ id: 'TemplateFacet' }))
      .meta({ description: 'The categories with their numbers of templates that match `search`.' }),
  })
  .meta({ id: 'TemplateFacets' })

let read: Template[] | undefined
/** Read at the first request: few processes need them, and reading them delays the start by 0.1 s or more. */
const templates = () => {
  read ??= readTemplates()
  return read
}

/** Ready-made workflows: search, read, import as a draft. */
export const templateRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/workflows/templates',
    scope: 'workflows:read',
    id: 'listTemplates',
    tag: 'Templates',
    summary: 'List templates',
    description: 'Ready-made workflows by name, without their specs.',
    query: z.strictObject({
      search: z
        .string()
        .max(200)
        .optional()
        .describe('Words that must all occur in the id, name, description, category or node types.'),
      category: z
        .string()
        .max(100)
        .optional()
        .meta({ description: `One of ${TEMPLATE_CATEGORIES.join(', ')}.` }),
      ...pageControls,
      limit: pageLimit(100),
    }),
    response: {
      status: 200,
      schema: z.object({ ...listEnvelope(summary).shape, facets }).meta({ id: 'TemplateList' }),
    },
    handler: async ({ query }) => {
      const { search = '', category } = query
      const found = templates().filter((template) => matches(template, search))
      const shown = found.filter((template) => category === undefined || template.category === category)
      const page = pageByName({ search, category }, shown, query)
      return {
        ...presentList({ ...page, data: page.data.map(presentSummary) }),
        facets: {
          category: TEMPLATE_CATEGORIES.map((value) => ({
            value,
            count: found.filter((template) => template.category === value).length,
          })),
        },
      }
    },
  }),
  route({
    method: 'GET',
    path: '/workflows/templates/{template_id}',
    scope: 'workflows:read',
    id: 'getTemplate',
    tag: 'Templates',
    summary: 'Retrieve a template',
    description: 'Returns a template with its spec.',
    params: z.object({ template_id: z.string().describe('A `template_id` of the list of templates.') }),
    response: { status: 200, schema: detail },
    handler: async ({ params }) => {
      const template = requireTemplate(params.template_id)
      return { ...presentSummary(template), spec: template.spec }
    },
  }),
  route({
    method: 'POST',
    path: '/workflows/import',
    scope: 'workflows:author',
    id: 'importTemplate',
    grows: true,
    tag: 'Templates',
    summary: 'Import a template',
    description:
      'Creates a workflow from a template, as a DRAFT. `warnings` lists missing requirements of the workflow: secrets, environment variables, custom fields, the mail server.',
    body: z
      .strictObject({
        template_id: z.string().min(1).max(200),
        name: z
          .string()
          .trim()
          .min(1)
          .max(200)
          .optional()
          .meta({ description: 'Default: the name of the template.' }),
      })
      .meta({ id: 'TemplateImport' }),
    response: { status: 201, schema: savedShape },
    example: { template_id: 'welcome-series', name: 'Welcome subscribers' },
    etag: true,
    handler: async ({ body, caller, deps, tenant, setHeader }) => {
      const template = requireTemplate(body.template_id)
      const { spec, name, description } = template
      const { content, warnings, references } = await compiled({ caller, deps, tenant }, { spec })
      const { row, missing } = await tenant(async (tx) => ({
        missing: [
          ...(await unknownNames(tx, { ...references, services: [] }, { ...deps.config })),
          ...(await unmetRequirements(tx, template, deps.config)),
        ],
        row: await createWorkflow(tx, { ...content, name: body.name ?? name, description }),
      }))
      return { ...withETag(setHeader, presentWorkflow(row)), warnings: [...warnings, ...missing] }
    },
  }),
]

/** Throws not_found. */
function requireTemplate(id: string): Template {
  const template = templates().find((one) => one.id === id)
  if (template) return template
  const near = nearest(
    id,
    templates().map((one) => one.id),
  )
  throw notFound('template', near ? `did you mean ${near}?` : 'GET /v1/workflows/templates lists them')
}

function matches({ id, name, description, category, nodeTypes }: Template, search: string): boolean {
  const text = [id, name, description, category, ...nodeTypes].join(' ').toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

const presentSummary = ({ id, name, description, category, requires }: Template) => ({
  object: 'template' as const,
  template_id: id,
  name,
  description,
  category,
  requires,
})
