import type { ComponentChildren } from 'preact'
import { EXAMPLE_SPEC } from '../../../workflows/nodes/example-spec.ts'
import { ActionButton, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Facts } from '../components/card.tsx'
import { Copyable } from '../components/code.tsx'
import { type Finding, Findings, Lines, type Validation } from '../components/findings.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Status } from '../components/status.tsx'
import { Time } from '../components/time.tsx'
import { errorsOf } from '../forms/errors.ts'
import { type ConsoleRoute, type Page, Refused, type View } from '../route.ts'
import { mayAuthor } from './workflow-list.tsx'
import { HERE, Tabs, type Workflow, workflowOf } from './workflow-parts.tsx'

export const workflowPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/workflows/new',
    formOf: 'createWorkflow',
    handler: async () => newPage({ spec: EXAMPLE_SPEC }),
  },
  {
    method: 'POST',
    path: '/workflows',
    async handler(view) {
      const spec = view.form.get('spec')
      if (view.form.get('do') === 'check') return newPage({ spec, ...(await checked(view, spec)) })
      const answer = await view.call('POST', '/app/v1/workflows', { spec })
      if (answer.status >= 400) return newPage({ spec, ...refusal(answer) }, answer.status)
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
  {
    method: 'POST',
    path: '/workflows/{workflow_id}',
    async handler(view) {
      const { form, call } = view
      const workflow = await workflowOf(view)
      const spec = form.get('spec')
      const version = Number(form.get('version'))
      if (form.get('do') === 'check')
        return page(view, workflow, { spec, version, ...(await checked(view, spec)) })
      const path = `/app/v1/workflows/${workflow.workflow_id}`
      const answer = await call('PATCH', path, { spec }, { 'if-match': `"${form.get('version')}"` })
      if (answer.status >= 400) return page(view, workflow, { spec, ...refusal(answer) }, answer.status)
      return { redirect: `/workflows/${workflow.workflow_id}?done=saved` }
    },
  },
  change('deactivate', 'deactivated'),
  {
    method: 'POST',
    path: '/workflows/{workflow_id}/activate',
    async handler(view) {
      const workflow = await workflowOf(view)
      const allow_missing = view.form.get('allow_missing') === 'true'
      const answer = await view.call('POST', `/app/v1/workflows/${workflow.workflow_id}/activate`, {
        allow_missing,
      })
      if (answer.status < 400) return { redirect: `/workflows/${workflow.workflow_id}?done=activated` }
      const { missing = [] } = (answer.body.error ?? {}) as { missing?: Finding[] }
      if (missing.length === 0) throw new Refused(answer)
      return page(view, workflow, { spec: workflow.spec ?? '', missing }, answer.status)
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

async function checked({ change }: View, spec: string) {
  return { validation: await change<Validation>('POST', '/app/v1/workflows/validate', { spec }) }
}

interface Edited {
  spec: string
  /**
   * The version that the spec was made from, if that is not the newest: a save must not replace one that was not seen.
   */
  version?: number
  validation?: Validation | undefined
  problems?: string[]
  /** What an activation needs. */
  missing?: Finding[]
}

/** Why a save was refused: the findings in the spec, or another reason. */
function refusal(answer: { status: number; body: Record<string, unknown> }): Partial<Edited> {
  const { validation, type } = (answer.body.error ?? {}) as { validation?: Validation; type?: string }
  if (validation) return { validation }
  if (type === 'version_conflict')
    return {
      problems: [
        'Somebody else saved a newer version. Compare with it under Versions, and save again from there.',
      ],
    }
  return { problems: errorsOf(answer, []).others }
}

function Editor({
  action,
  edited,
  button,
  version,
}: {
  action: string
  edited: Edited
  button: string
  version?: number
}) {
  const { spec, validation, problems = [] } = edited
  return (
    <>
      {problems.map((problem) => (
        <p class="notice red" role="alert" key={problem}>
          {problem}
        </p>
      ))}
      <PostForm action={action} class="form wide-form" label="The workflow in YAML">
        {version !== undefined && <input type="hidden" name="version" value={version} />}
        <div class="field">
          <label for="f-spec">YAML</label>
          <textarea
            id="f-spec"
            name="spec"
            class="mono yaml"
            rows={24}
            spellcheck={false}
            autocapitalize="off"
            dir="ltr"
          >
            {spec.startsWith('\n') ? `\n${spec}` : spec}
          </textarea>
        </div>
        <div class="form-actions">
          <button type="submit" class="button primary" name="do" value="save">
            {button}
          </button>
          <button type="submit" class="button plain" name="do" value="check">
            Check
          </button>
          <a class="button plain" href="/docs/workflows" target="_blank" rel="noreferrer">
            How to write one
          </a>
        </div>
      </PostForm>
      {validation && <Findings text={spec} validation={validation} />}
    </>
  )
}

const newPage = (edited: Edited, status = 200): Page => ({
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
      <Editor action="/workflows" edited={edited} button="Save the draft" />
    </>
  ),
})

function page(view: View, workflow: Workflow, edited: Edited, status = 200): Page {
  const here = `/workflows/${workflow.workflow_id}`
  const { trigger_problem: problem, spec } = workflow
  return {
    title: workflow.name,
    status,
    content: (
      <>
        <PageHeader
          title={
            <span dir="auto">
              {workflow.name} <Status of={workflow.status} />
            </span>
          }
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
        <Facts of={factsOf(workflow)} />
        {mayAuthor(view) && spec !== null ? (
          <Editor
            action={here}
            edited={edited}
            button="Save a new version"
            version={edited.version ?? workflow.version}
          />
        ) : (
          <Lines text={spec ?? JSON.stringify(workflow.definition, null, 2)} />
        )}
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
        <ActionButton action={`${here}/activate`} look="primary">
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
