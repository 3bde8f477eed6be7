import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
} from '@modelcontextprotocol/server'
import { isStorable } from '../../workflows/shared/storable-text.ts'
import { toRequest } from './arguments.ts'
import type { ToolDeps } from './call-tool.ts'
import type { Operation } from './operations.ts'

/** Resources: what people attach to a conversation. Each is the response of an operation of /v1 that retrieves it. */

interface ResourceKind {
  /** With at most one parameter: `agx://runs/{run_id}`. */
  uri: string
  title: string
  description: string
  /** The id of the operation; `{kind}` selects that of a kind. */
  operation: string
  /** The member of the response that is the text; default: the response as JSON. */
  member?: string
  mimeType: string
}

const JSON_TYPE = 'application/json'
const MARKDOWN = 'text/markdown'

const RESOURCES: readonly ResourceKind[] = [
  {
    uri: 'agx://guide',
    title: 'Guide to writing workflows',
    description: 'The YAML in which workflows are written.',
    operation: 'getAuthoringGuide',
    mimeType: MARKDOWN,
  },
  {
    uri: 'agx://guide/{topic}',
    title: 'A topic of the guide',
    description: 'One chapter, node type or kind of record, in full detail.',
    operation: 'getAuthoringGuide',
    mimeType: MARKDOWN,
  },
  {
    uri: 'agx://node-types/{node_type}',
    title: 'A node type',
    description: 'The config schema, the output and an example of a type of node.',
    operation: 'getNodeType',
    mimeType: JSON_TYPE,
  },
  {
    uri: 'agx://templates/{template_id}',
    title: 'A workflow template',
    description: 'The YAML of a ready-made workflow.',
    operation: 'getTemplate',
    member: 'spec',
    mimeType: 'application/yaml',
  },
  {
    uri: 'agx://workflows/{workflow_id}',
    title: 'A workflow',
    description: 'The YAML of a workflow.',
    operation: 'getWorkflow',
    member: 'spec',
    mimeType: 'application/yaml',
  },
  {
    uri: 'agx://runs/{run_id}',
    title: 'A run',
    description: 'A run of a workflow, node by node.',
    operation: 'getRun',
    mimeType: JSON_TYPE,
  },
  {
    uri: 'agx://documents/{document_id}',
    title: 'A document of the knowledge base',
    description: 'The text of a document.',
    operation: 'getKnowledgeDocument',
    mimeType: JSON_TYPE,
  },
  {
    uri: 'agx://schemas/{kind}',
    title: 'A kind of record',
    description: 'The fields of a kind of records.',
    operation: 'get_schema',
    mimeType: JSON_TYPE,
  },
]

const PARAMETER = /\{(\w+)\}/

type Visible = Pick<ToolDeps, 'visible'>

/** The operations that retrieve a resource: several if the kind selects one. */
const operationsOf = ({ operation }: ResourceKind, { visible }: Visible): Operation[] =>
  visible.filter((one) => one.route.id === operation || one.action === operation)

const isOffered = (resource: ResourceKind, deps: Visible) => operationsOf(resource, deps).length > 0

/** The resources without parameters, and one for each kind of record that the key may read. */
export function listResources(deps: Visible): Resource[] {
  return RESOURCES.filter((resource) => isOffered(resource, deps)).flatMap((resource) => {
    const { uri, title, description, mimeType } = resource
    if (!PARAMETER.test(uri)) return [{ uri, name: nameOf(uri), title, description, mimeType }]
    if (!uri.includes('{kind}')) return []
    return operationsOf(resource, deps).map(({ kind, route }) => {
      const own = uri.replace('{kind}', kind!)
      return { uri: own, name: nameOf(own), title: route.summary, mimeType }
    })
  })
}

export const listResourceTemplates = (deps: Visible): ResourceTemplateType[] =>
  RESOURCES.filter(({ uri }) => PARAMETER.test(uri))
    .filter((resource) => isOffered(resource, deps))
    .map(({ uri, title, description, mimeType }) => ({
      uriTemplate: uri,
      name: nameOf(uri),
      title,
      description,
      mimeType,
    }))

/** Whether a template with this URI and parameter is offered. */
export const isResourceTemplate = (uri: string, parameter: string, deps: Visible): boolean =>
  PARAMETER.exec(uri)?.[1] === parameter &&
  RESOURCES.some((resource) => resource.uri === uri && isOffered(resource, deps))

/** The kinds of record whose schemas are offered. */
export const kindsOf = (deps: Visible): string[] =>
  RESOURCES.filter(({ uri }) => uri.includes('{kind}')).flatMap((resource) =>
    operationsOf(resource, deps).map(({ kind }) => kind!),
  )

const nameOf = (uri: string) => uri.replace('agx://', '').replace(/\/\{.*/, '')

/** Retrieves a resource. Throws ResourceNotFoundError, also for what the key may not read. */
export async function readResource(deps: ToolDeps, uri: string): Promise<ReadResourceResult> {
  for (const resource of RESOURCES) {
    const value = valueIn(uri, resource.uri)
    if (value === undefined) continue
    const name = PARAMETER.exec(resource.uri)?.[1]
    const own = operationsOf(resource, deps)
    const operation = name === 'kind' ? own.find(({ kind }) => kind === value) : own[0]
    if (!operation) break
    const given = name === undefined || name === 'kind' ? {} : { [name]: value }
    const { status, body } = await deps.request(toRequest(operation, given))
    if (status === 404 || status === 422) break
    if (status >= 400) throw refusalOf(body)
    const { member, mimeType } = resource
    const { response } = operation.route
    const text =
      'markdown' in response && response.markdown
        ? response.markdown(body as never)
        : member === undefined
          ? JSON.stringify(body)
          : String(body[member])
    return { contents: [{ uri, mimeType, text }] }
  }
  throw new ResourceNotFoundError(uri.slice(0, 200))
}

/** The value of the template's parameter, `''` if it has none; undefined if the URI is another. */
function valueIn(uri: string, template: string): string | undefined {
  const [before, after] = template.split(PARAMETER.exec(template)?.[0] ?? '\n')
  if (after === undefined) return uri === template ? '' : undefined
  const value = uri.startsWith(before!) ? uri.slice(before!.length) : ''
  if (value === '' || value.includes('/') || !isStorable(value)) return undefined
  try {
    return decodeURIComponent(value)
  } catch {
    return undefined
  }
}

function refusalOf(body: Record<string, unknown>): ProtocolError {
  const { message } = body.error as { message: string }
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message, body.error)
}
