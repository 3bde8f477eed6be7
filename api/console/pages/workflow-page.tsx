import type { ComponentChildren } from 'preact'
import { EXAMPLE_SPEC } from '../../../workflows/nodes/example-spec.ts'
import { ActionButton, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Copyable } from '../components/code.tsx'
import { Diff } from '../components/diff.tsx'
import { type Finding, Lines } from '../components/findings.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type NodeChoice, SpecEditor } from '../components/spec-editor.tsx'
import { Time } from '../components/time.tsx'
import { WorkflowGraph } from '../components/workflow-graph.tsx'
import { KEY_FIELD } from '../forms/form.ts'
import { type ConsoleRoute, type List, type Page, Refused, type Shown, type View } from '../route.ts'
import { afterConflict } from '../workflows/conflict.ts'
import { type Edited, editedBy, type Meanwhile, refusal } from '../workflows/edit.ts'
import { insertNode } from '../workflows/insert-node.ts'
import { type SnippetType, snippetOf } from '../workflows/snippet.ts'
import { mayAuthor } from './workflow-list.tsx'
import { HERE, Tabs, type Workflow, WorkflowTitle, workflowOf } from './workflow-parts.tsx'

export const workflowPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/workflows/new',
    formOf: 'createWorkflow',
    async handler(view) {
      const type = view.query.get('node')
      if (!type) return newPage(view, { spec: EXAMPLE_SPEC })
      const found = await view.read<SnippetType>(`/app/v1/workflows/nodes/${encodeURIComponent(type)}`)
      return newPage(view, { spec: insertNode('name: New workflow\n', snippetOf(found)) })
    },
  },
  {
    method: 'POST',
    path: '/workflows',
    async handler(view) {
      const edited = await editedBy(view)
      if (edited) return newPage(view, edited)
      const spec = view.form.get('spec')
      const answer = await view.call('POST', '/app/v1/workflows', { spec })
      if (answer.status >= 400) return newPage(view, { spec, ...refusal(answer) }, answer.status)
      return { redirect: `/workflows/${answer.body.workflow_id}?done=created` }
    },
  },
  {
    method: 'GET',
    path: '/workflows/{workflow_id}',
    async handler(view) {
      const workflow = await workflowOf(view)
      return page(view, workflow, { spec: workflow.spec ?? '' })
    },
  },
  { method: 'POST', path: '/workflows/{workflow_id}', handler: save },
  change('deactivate', 'deactivated'),
  {
    method: 'POST',
    path: '/workflows/{workflow_id}/activate',
    async handler(view) {
      const workflow = await workflowOf(view)
      return activate(view, workflow, view.form.get('allow_missing') === 'true')
    },
  },
  {
    method: 'POST',
    path: '/workflows/{workflow_id}/delete',
    async handler(view) {
      await view.change('DELETE', `/app/v1/workflows/${view.params.workflow_id}`)
      return { redirect: '/workflows?done=removed' }
    },
  },
]

/** Saves what was typed as the next version, if nobody saved another one since the author opened the workflow. */
async function save(view: View): Promise<Shown> {
  const { form, call, params } = view
  const spec = form.get('spec')
  const path = `/app/v1/workflows/${params.workflow_id}`
  const found = await call('GET', path)
  // Somebody has deleted it: what was typed can be saved as another one.
  if (found.status === 404) return newPage(view, { spec, ...refusal(found) }, found.status)
  if (found.status >= 400) throw new Refused(found)
  const workflow = found.body as unknown as Workflow
  const version = Number(form.get('version'))
  const edited = await editedBy(view)
  if (edited) return page(view, workflow, { version, ...edited })
  const answer = await call('PATCH', path, { spec }, { 'if-match': `"${form.get('version')}"` })
  if (answer.status === 412)
    return page(view, workflow, await afterConflict(view, await workflowOf(view)), answer.status)
  if (answer.status >= 400) return page(view, workflow, { spec, version, ...refusal(answer) }, answer.status)
  if (form.get('do') === 'publish') return activate(view, answer.body as unknown as Workflow, false)
  return { redirect: `/workflows/${workflow.workflow_id}?done=saved` }
}

async function activate(view: View, workflow: Workflow, allow_missing: boolean): Promise<Shown> {
  const path = `/app/v1/workflows/${workflow.workflow_id}/activate`
  const key = view.form.get(KEY_FIELD)
  // The form of a save has used its key for that.
  const headers = key ? { 'idempotency-key': `${key} activate` } : {}
  const answer = await view.call('POST', path, { allow_missing }, headers)
  if (answer.status < 400) return { redirect: `/workflows/${workflow.workflow_id}?done=activated` }
  const { missing = [] } = (answer.body.error ?? {}) as { missing?: Finding[] }
  if (missing.length === 0) throw new Refused(answer)
  return page(view, workflow, { spec: workflow.spec ?? '', missing }, answer.status)
}

function change(verb: string, done: string): ConsoleRoute {
  return {
    method: 'POST',
    path: `/workflows/{workflow_id}/${verb}`,
    async handler(view) {
      await view.change('POST', `/app/v1/workflows/${view.params.workflow_id}/${verb}`)
      return { redirect: `/workflows/${view.params.workflow_id}?done=${done}` }
    },
  }
}

const nodesOf = async ({ read }: View): Promise<NodeChoice[]> =>
  (await read<List<NodeChoice>>('/app/v1/workflows/nodes')).data

const newPage = async (view: View, edited: Edited, status = 200): Promise<Page> => ({
  title: 'New workflow',
  status,
  content: (
    <>
      <PageHeader
        title="New workflow"
        crumbs={[HERE]}
        about="It is saved as a draft, which runs only when somebody starts it."
      >
        <LinkButton href="/workflows/templates">Begin with a template</LinkButton>
      </PageHeader>
      <SpecEditor action="/workflows" edited={edited} nodes={await nodesOf(view)} save="Save the draft" />
    </>
  ),
})

async function page(view: View, workflow: Workflow, edited: Edited, status = 200): Promise<Page> {
  const here = `/workflows/${workflow.workflow_id}`
  const { trigger_problem: problem, spec } = workflow
  return {
    title: workflow.name,
    status,
    content: (
      <>
        <PageHeader
          title={<WorkflowTitle workflow={workflow} />}
          crumbs={[HERE]}
          about={workflow.description}
        >
          <LinkButton href={`${here}/run`} icon="play">
            Run
          </LinkButton>
          {mayAuthor(view) && <WorkflowActions workflow={workflow} />}
        </PageHeader>
        <Tabs workflow={workflow} current="Workflow" />
        {problem && (
          <p class="notice red">
            <Icon name="circle-x" /> The trigger failed {problem.count} times, last <Time at={problem.at} />:{' '}
            {problem.message}
          </p>
        )}
        {edited.missing && <Missing findings={edited.missing} action={`${here}/activate`} />}
        {edited.meanwhile && <Conflict meanwhile={edited.meanwhile} />}
        <Facts of={factsOf(workflow)} />
        <div class="columns editor-columns">
          <div class="stack">
            {mayAuthor(view) && spec !== null ? (
              <SpecEditor
                action={here}
                edited={edited}
                nodes={await nodesOf(view)}
                save="Save a new version"
                publish="Save and publish"
                version={edited.meanwhile?.version ?? edited.version ?? workflow.version}
              />
            ) : (
              <Lines text={spec ?? JSON.stringify(workflow.definition, null, 2)} />
            )}
          </div>
          <Card title={`Graph of version ${workflow.version}`}>
            <WorkflowGraph definition={workflow.definition} />
          </Card>
        </div>
      </>
    ),
  }
}

function factsOf(workflow: Workflow): [string, ComponentChildren][] {
  const { version, active_version: active, trigger } = workflow
  return [
    [
      'Version',
      active !== null && active !== version
        ? `${version}; triggers start ${active} until you activate again`
        : version,
    ],
    ['Trigger', trigger.type],
    ['Changed', <Time at={workflow.updated_at} key="changed" />],
    ['Id', <Copyable text={workflow.workflow_id} label="the id" key="id" />],
  ]
}

const Conflict = ({ meanwhile: { version, isMerged, diff } }: { meanwhile: Meanwhile }) => (
  <>
    <div class="notice amber" role="alert" tabIndex={-1} data-focus>
      <p>
        Somebody else saved a newer version ({version}) while you worked. Nothing is saved yet, and nothing is
        lost:
      </p>
      <p>
        {isMerged
          ? 'the text below has both changes. Look at it, and save.'
          : `both changed the same lines. Below is your text: take over what you want of version ${version}, and save. Your text then takes its place; it stays under Versions.`}
      </p>
    </div>
    {diff && (
      <Card title={`What changed in version ${version}`}>
        <Diff text={diff} />
      </Card>
    )}
  </>
)

const Missing = ({ findings, action }: { findings: Finding[]; action: string }) => (
  <div class="notice amber" role="alert">
    <p>It is not active yet, because something that it needs is missing:</p>
    <ul>
      {findings.map(({ message, hint }) => (
        <li key={message}>
          {message}
          {hint && `: ${hint}`}
        </li>
      ))}
    </ul>
    <ActionButton action={action} fields={{ allow_missing: 'true' }}>
      Activate anyway
    </ActionButton>
  </div>
)

function WorkflowActions({ workflow }: { workflow: Workflow }) {
  const here = `/workflows/${workflow.workflow_id}`
  const { status, version, active_version } = workflow
  const isActive = status === 'active'
  return (
    <>
      {(!isActive || active_version !== version) && (
        <ActionButton action={`${here}/activate`}>
          {isActive ? `Publish version ${version}` : 'Activate'}
        </ActionButton>
      )}
      {isActive && (
        <ConfirmButton
          action={`${here}/deactivate`}
          question="Its trigger starts no further run. Open runs go on."
          confirm="Deactivate"
        >
          Deactivate
        </ConfirmButton>
      )}
      <ConfirmButton
        action={`${here}/delete`}
        question={`Deletes “${workflow.name}”: it can no longer be started. Open runs go on to their end.`}
        confirm="Delete the workflow"
        look="danger"
      >
        Delete
      </ConfirmButton>
    </>
  )
}
