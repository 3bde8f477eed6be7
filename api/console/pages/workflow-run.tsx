import type { InputSpec } from '../../../workflows/language/definition.ts'
import { LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { ErrorSummary, Field } from '../components/field.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { textOf } from '../components/schema-form.tsx'
import { Table } from '../components/table.tsx'
import { errorsOf, type FormErrors, NO_ERRORS } from '../forms/errors.ts'
import { type FieldKind, type FieldSpec, labelOf } from '../forms/field-spec.ts'
import type { Form } from '../forms/form.ts'
import { toBody } from '../forms/to-body.ts'
import type { ConsoleRoute, Page } from '../route.ts'
import { labels } from './sign-in.tsx'
import { EFFECTS, type Workflow, workflowOf } from './workflow-parts.tsx'

/** The start of a run by hand: its inputs, a preview of what it does, and the start. */
export const workflowRunPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/workflows/{workflow_id}/run',
    handler: async (view) => formPage(await workflowOf(view), {}),
  },
  {
    method: 'POST',
    path: '/workflows/{workflow_id}/run',
    async handler(view) {
      const { form, call } = view
      const workflow = await workflowOf(view)
      const fields = inputFields(workflow)
      if (form.get('do') === 'edit') return formPage(workflow, { typed: form })
      const body = toBody(fields, form, { omitEmpty: true })
      const confirm = form.get('do') === 'run'
      const path = `/app/v1/workflows/${workflow.workflow_id}/run`
      const answer = await call('POST', path, { inputs: body.inputs ?? {}, confirm })
      if (answer.status >= 400) {
        const errors = errorsOf(
          answer,
          fields.map(({ name }) => name),
        )
        return formPage(workflow, { typed: form, errors }, answer.status)
      }
      if (confirm) return { redirect: `/runs/${answer.body.run_id}?done=started` }
      return previewPage(workflow, form, answer.body as unknown as { preview: Preview })
    },
  },
]

interface Preview {
  version: number
  nodes: { id: string; type: string; title: string; effect: string; reach: string }[]
  missing: { message: string }[]
  warnings: { message: string }[]
}

const KINDS: Partial<Record<InputSpec['type'], FieldKind>> = {
  number: 'number',
  boolean: 'boolean',
  object: 'json',
  array: 'json',
}

/** The fields of the inputs that the workflow declares. */
function inputFields({ definition }: Workflow): FieldSpec[] {
  return Object.entries(definition.inputs ?? {}).map(([name, input]) => ({
    name: `inputs.${name}`,
    label: labelOf(name),
    help: [input.description, KINDS[input.type] === 'json' && 'As JSON.'].filter(Boolean).join(' '),
    type: KINDS[input.type] ?? 'text',
    choices: [],
    required: input.required === true && input.default === undefined,
    max: undefined,
    references: undefined,
    nullable: true,
    initial: input.type === 'boolean' ? null : (input.default ?? null),
  }))
}

function formPage(workflow: Workflow, state: { typed?: Form; errors?: FormErrors }, status = 200): Page {
  const { typed, errors = NO_ERRORS } = state
  const fields = inputFields(workflow)
  const here = `/workflows/${workflow.workflow_id}`
  return {
    title: `Run ${workflow.name}`,
    status,
    content: (
      <>
        <PageHeader
          title="Run"
          crumbs={[
            { href: '/workflows', label: 'Workflows' },
            { href: here, label: workflow.name },
          ]}
        />
        <PostForm action={`${here}/run`} class="form" label={`Run ${workflow.name}`}>
          <ErrorSummary errors={errors} labels={labels(fields)} />
          {fields.length === 0 && <p class="muted">It takes no inputs.</p>}
          {fields.map((spec) => (
            <Field
              key={spec.name}
              spec={spec}
              value={{ text: typed ? typed.get(spec.name) : textOf(spec.initial) }}
              errors={errors.byField.get(spec.name)}
            />
          ))}
          <div class="form-actions">
            <button type="submit" class="button primary" name="do" value="preview">
              Preview
            </button>
            <LinkButton href={here}>Cancel</LinkButton>
          </div>
        </PostForm>
      </>
    ),
  }
}

function previewPage(workflow: Workflow, form: Form, { preview }: { preview: Preview }): Page {
  const here = `/workflows/${workflow.workflow_id}`
  const notes = [...preview.missing, ...preview.warnings]
  return {
    title: `Run ${workflow.name}`,
    content: (
      <>
        <PageHeader
          title="Run"
          crumbs={[
            { href: '/workflows', label: 'Workflows' },
            { href: here, label: workflow.name },
          ]}
        />
        <p>This is what would run: version {preview.version}. Nothing has happened yet.</p>
        {notes.length > 0 && (
          <div class="notice amber">
            <ul>
              {notes.map(({ message }) => (
                <li key={message}>{message}</li>
              ))}
            </ul>
          </div>
        )}
        <Card title="Nodes" flush>
          <Table
            label="Nodes"
            rows={preview.nodes}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Node', cell: ({ title }) => <strong title={title}>{title}</strong> },
              { title: 'Type', cell: ({ type }) => type },
              { title: 'Effect', cell: ({ effect }) => EFFECTS[effect] ?? effect },
              { title: 'Runs', cell: ({ reach }) => (reach === 'runs' ? 'yes' : reach.replace('_', ' ')) },
            ]}
          />
        </Card>
        <PostForm action={`${here}/run`} class="form" label="Run it">
          {form
            .typed()
            .filter(([name]) => name.startsWith('inputs.'))
            .map(([name, value]) => (
              <input type="hidden" name={name} value={value} key={name} />
            ))}
          <div class="form-actions">
            <button type="submit" class="button primary" name="do" value="run">
              Run it now
            </button>
            <button type="submit" class="button plain" name="do" value="edit">
              Change the inputs
            </button>
          </div>
        </PostForm>
      </>
    ),
  }
}
