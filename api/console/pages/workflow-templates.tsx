import { TEMPLATE_CATEGORIES } from '../../../workflows/templates/index.ts'
import { ActionButton, Button, LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Empty } from '../components/empty.tsx'
import { Marked } from '../components/field.tsx'
import { ChoiceFilter, Filters, SearchFilter } from '../components/filters.tsx'
import { Lines } from '../components/findings.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Paging } from '../components/table.tsx'
import { errorsOf } from '../forms/errors.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { mayAuthor, type WorkflowSummary } from './workflow-list.tsx'
import { HERE } from './workflow-parts.tsx'

interface Template {
  template_id: string
  name: string
  description: string
  category: string
  requires: {
    secrets: string[]
    env: string[]
    custom_fields: { entity: string; name: string; type: string }[]
    service_settings: string[]
  }
}

type Templates = List<Template> & { facets: { category: { value: string; count: number }[] } }

const GALLERY = { href: '/workflows/templates', label: 'Templates' }

/** The gallery of ready-made workflows, one of them, and its import. */
export const workflowTemplatePages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/workflows/templates',
    handler: async (view) =>
      galleryPage(
        view,
        await view.read<Templates>(pageOf(view, '/app/v1/workflows/templates', ['search', 'category'])),
      ),
  },
  {
    method: 'GET',
    path: '/workflows/templates/{template_id}',
    handler: async (view) => templatePage(view, await templateOf(view, view.params.template_id!)),
  },
  {
    method: 'POST',
    path: '/workflows/import',
    async handler(view) {
      const { form, call } = view
      const template_id = form.get('template_id')
      const name = form.get('name').trim()
      const answer = await call('POST', '/app/v1/workflows/import', { template_id, ...(name && { name }) })
      if (answer.status < 400) {
        const { workflow_id } = answer.body as unknown as WorkflowSummary
        return { redirect: `/workflows/${workflow_id}?done=created` }
      }
      const problems = errorsOf(answer, []).others
      return templatePage(view, await templateOf(view, template_id), {
        name,
        problems,
        status: answer.status,
      })
    },
  },
]

const templateOf = ({ read }: View, id: string) =>
  read<Template & { spec: string }>(`/app/v1/workflows/templates/${encodeURIComponent(id)}`)

const galleryPage = (view: View, templates: Templates): Page => ({
  title: 'Templates',
  content: (
    <>
      <PageHeader
        title="Templates"
        crumbs={[HERE]}
        about="Ready-made workflows. An import makes a draft of your own, to look at and change."
      />
      <Filters>
        <SearchFilter name="search" />
        <ChoiceFilter
          name="category"
          choices={TEMPLATE_CATEGORIES.map((id) => ({ id, name: counted(id, templates) }))}
        />
      </Filters>
      {templates.data.length === 0 ? (
        <Empty icon="search" title="No template matches">
          <p>Search for what it does, such as “invoice”, or for a node that it has.</p>
          <LinkButton href={GALLERY.href}>Show all</LinkButton>
        </Empty>
      ) : (
        <div class="gallery">
          {templates.data.map((template) => (
            <section class="card" key={template.template_id}>
              <h2>
                <a href={`${GALLERY.href}/${template.template_id}`}>{template.name}</a>
              </h2>
              <p class="muted">
                <Marked text={template.description} />
              </p>
              <div class="chips">
                <span class="chip">{template.category}</span>
                {needsOf(template).map(([what, names]) => (
                  <span class="chip amber" key={what}>{`${what}: ${names.join(', ')}`}</span>
                ))}
              </div>
              <div class="actions">
                <LinkButton href={`${GALLERY.href}/${template.template_id}`}>Look at it</LinkButton>
                {mayAuthor(view) && (
                  <ActionButton action="/workflows/import" fields={{ template_id: template.template_id }}>
                    Import
                  </ActionButton>
                )}
              </div>
            </section>
          ))}
        </div>
      )}
      <Paging list={templates} />
    </>
  ),
})

function counted(category: string, { facets }: Templates): string {
  const count = facets.category.find(({ value }) => value === category)?.count ?? 0
  return `${category} (${count})`
}

/** What an organization needs before the workflow can run. */
const needsOf = ({ requires }: Template): [string, string[]][] =>
  (
    [
      ['Secrets', requires.secrets],
      ['Environment', requires.env],
      ['Custom fields', requires.custom_fields.map(({ entity, name }) => `${name} of ${entity}`)],
      ['Service', requires.service_settings],
    ] satisfies [string, string[]][]
  ).filter(([, names]) => names.length > 0)

/** Where one makes what is needed; whoever runs the service sets what belongs to it. */
const WHERE: Record<string, string> = {
  Secrets: '/settings/secrets',
  Environment: '/settings/variables',
  'Custom fields': '/settings/custom-fields',
}

function templatePage(
  view: View,
  template: Template & { spec: string },
  typed: { name?: string; problems?: string[]; status?: number } = {},
): Page {
  const { template_id, name, description, category, spec } = template
  const needs = needsOf(template)
  return {
    title: name,
    status: typed.status ?? 200,
    content: (
      <>
        <PageHeader title={name} crumbs={[HERE, GALLERY]} about={<Marked text={description} />} />
        {typed.problems?.map((problem) => (
          <p class="notice red" role="alert" key={problem}>
            {problem}
          </p>
        ))}
        <div class="columns">
          <Lines text={spec} />
          <div class="stack">
            {mayAuthor(view) && (
              <Card title="Import">
                <PostForm action="/workflows/import" class="form" label="Import the template">
                  <input type="hidden" name="template_id" value={template_id} />
                  <div class="field">
                    <label for="f-name">Name</label>
                    <input
                      id="f-name"
                      name="name"
                      type="text"
                      value={typed.name ?? name}
                      maxLength={200}
                      dir="auto"
                    />
                    <p class="help">A draft: nothing runs until you activate it.</p>
                  </div>
                  <div class="form-actions">
                    <Button look="primary">Import</Button>
                  </div>
                </PostForm>
              </Card>
            )}
            <Card title="It needs">
              {needs.length === 0 && <p class="muted">Nothing: it can be activated at once.</p>}
              {needs.map(([what, names]) => (
                <div key={what}>
                  <h3>{what}</h3>
                  <p>
                    {names.map((one) => (
                      <code key={one}>{one} </code>
                    ))}
                  </p>
                  <p class="help">
                    {WHERE[what] ? <a href={WHERE[what]}>Set it</a> : 'Whoever runs the service sets it.'}
                  </p>
                </div>
              ))}
              <p class="muted">
                Category: <a href={`${GALLERY.href}?category=${category}`}>{category}</a>
              </p>
            </Card>
          </div>
        </div>
      </>
    ),
  }
}
