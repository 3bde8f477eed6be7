import { LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Code, Json } from '../components/code.tsx'
import { Empty } from '../components/empty.tsx'
import { Marked } from '../components/field.tsx'
import { ChoiceFilter, Filters, SearchFilter } from '../components/filters.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Table } from '../components/table.tsx'
import { labelOf } from '../forms/field-spec.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { snippetOf } from '../workflows/snippet.ts'
import { mayAuthor } from './workflow-list.tsx'
import { EFFECTS, HERE } from './workflow-parts.tsx'

interface NodeSummary {
  node_type: string
  category: string
  title: string
  description: string
  effect: string
  deprecated?: string
  output_handles: { name: string; description: string }[]
}

interface Schema {
  type?: string | string[]
  description?: string
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  anyOf?: Schema[]
  oneOf?: Schema[]
}

type NodeDetail = NodeSummary & {
  config_schema: Schema
  output_schema: Schema
  example: { config: Record<string, unknown> }
}

const CATALOGUE = { href: '/workflows/nodes', label: 'Nodes' }

/** The catalogue of node types, and one of them with its snippet. */
export const workflowNodePages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/workflows/nodes',
    async handler({ query, read }) {
      const sent = new URLSearchParams()
      for (const name of ['search', 'category']) if (query.get(name)) sent.set(name, query.get(name)!)
      const [found, all] = await Promise.all([
        read<List<NodeSummary>>(`/app/v1/workflows/nodes?${sent}`),
        read<List<NodeSummary>>('/app/v1/workflows/nodes'),
      ])
      return cataloguePage(found.data, [...new Set(all.data.map(({ category }) => category))].sort())
    },
  },
  {
    method: 'GET',
    path: '/workflows/nodes/{node_type}',
    async handler(view) {
      const path = `/app/v1/workflows/nodes/${encodeURIComponent(view.params.node_type!)}`
      return nodePage(view, await view.read<NodeDetail>(path))
    },
  },
]

const cataloguePage = (nodes: NodeSummary[], categories: string[]): Page => ({
  title: 'Nodes',
  content: (
    <>
      <PageHeader
        title="Nodes"
        crumbs={[HERE]}
        about="What a workflow is made of. Names of similar nodes in other products are found too."
      />
      <Filters>
        <SearchFilter name="search" />
        <ChoiceFilter name="category" choices={categories} />
      </Filters>
      {nodes.length === 0 ? (
        <Empty icon="search" title="No node matches">
          <p>Try another word for what it should do, such as “mail”, “wait” or “request”.</p>
          <LinkButton href={CATALOGUE.href}>Show all</LinkButton>
        </Empty>
      ) : (
        <div class="gallery nodes">
          {nodes.map(({ node_type, title, description, category, effect, deprecated }) => (
            <section class="card" key={node_type}>
              <h2>
                <a href={`${CATALOGUE.href}/${node_type}`}>{title}</a> <code class="muted">{node_type}</code>
              </h2>
              <p class="muted">
                <Marked text={firstSentence(description)} />
              </p>
              <div class="chips">
                <span class="chip">{category}</span>
                {effect !== 'pure' && <span class="chip">{EFFECTS[effect] ?? effect}</span>}
                {deprecated && <span class="chip amber">not to be used any more</span>}
              </div>
            </section>
          ))}
        </div>
      )}
    </>
  ),
})

const firstSentence = (text: string) => /^[\s\S]*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, '.') ?? text

function nodePage(view: View, node: NodeDetail): Page {
  const { node_type, title, description, category, effect, deprecated, output_handles } = node
  const snippet = snippetOf(node)
  const fields = fieldsOf(node.config_schema)
  return {
    title,
    content: (
      <>
        <PageHeader title={title} crumbs={[HERE, CATALOGUE]} about={<Marked text={description} />}>
          {mayAuthor(view) && (
            <LinkButton href={`/workflows/new?node=${node_type}`} icon="plus">
              New workflow with it
            </LinkButton>
          )}
        </PageHeader>
        {deprecated && (
          <p class="notice amber">
            Not to be used any more: <Marked text={deprecated} />
          </p>
        )}
        <Facts
          of={[
            ['Type', <code key="type">{node_type}</code>],
            ['Category', category],
            ['Effect', EFFECTS[effect] ?? effect],
            ['Leaves by', output_handles.map(({ name }) => name).join(', ')],
          ]}
        />
        <div data-snippet={snippet}>
          <Card title="Example">
            <Code text={snippet} label="the example" />
          </Card>
        </div>
        {fields.length > 0 && (
          <Card title="Config" flush>
            <Table
              label="Config"
              rows={fields}
              keyOf={({ name }) => name}
              columns={[
                { title: 'Member', cell: ({ name }) => <code>{name}</code> },
                { title: 'Type', cell: ({ schema }) => typeOf(schema) },
                { title: 'Required', cell: ({ isRequired }) => (isRequired ? 'yes' : '') },
                {
                  title: 'What it says',
                  cell: ({ schema }) => (
                    <span class="wrapping">
                      <Marked text={schema.description ?? ''} />
                    </span>
                  ),
                },
              ]}
            />
          </Card>
        )}
        <details class="card" id="schemas">
          <summary>JSON Schemas of config and output</summary>
          <div class="side-by-side">
            <Json value={node.config_schema} label="the schema of the config" />
            <Json value={node.output_schema} label="the schema of the output" />
          </div>
        </details>
      </>
    ),
  }
}

interface ConfigField {
  name: string
  schema: Schema
  isRequired: boolean
}

/** The members of a config; those of a union are named once. */
function fieldsOf({ properties, required = [], anyOf, oneOf }: Schema): ConfigField[] {
  const own = Object.entries(properties ?? {}).map(([name, schema]) => ({
    name,
    schema,
    isRequired: required.includes(name),
  }))
  const others = [...(anyOf ?? []), ...(oneOf ?? [])].flatMap(fieldsOf)
  return [...new Map([...others, ...own].map((field) => [field.name, field])).values()]
}

function typeOf({ type, enum: values, anyOf, oneOf }: Schema): string {
  if (values) return values.map(String).join(', ')
  const several = [...(anyOf ?? []), ...(oneOf ?? [])].map(typeOf)
  return several.length > 0
    ? [...new Set(several)].join(' or ')
    : [type ?? 'any'].flat().map(labelOf).join(' or ')
}
