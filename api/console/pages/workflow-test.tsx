import { isObject } from '../../../workflows/shared/is-object.ts'
import { Button } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Json } from '../components/code.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Status } from '../components/status.tsx'
import { Table } from '../components/table.tsx'
import { Duration, Time } from '../components/time.tsx'
import { errorsOf } from '../forms/errors.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { mayAuthor } from './workflow-list.tsx'
import { EFFECTS, HERE, Tabs, type Workflow, WorkflowTitle, workflowOf } from './workflow-parts.tsx'

interface Sample {
  node_id: string
  output: unknown
  run_id: string | null
  updated_at: string
}

interface Preview {
  effect: string
  warnings: string[]
  config: unknown
  calls?: string[]
}

interface Result {
  status: string
  output?: unknown
  handle?: string | null
  rendered_config?: unknown
  duration_ms?: number
  warnings?: string[]
  log?: { time: string; message: string }[]
  error?: { message?: string; code?: string }
}

/** What the page shows below its form. */
interface Shown {
  node?: string
  /** The JSON of the inputs, as typed. */
  inputs?: string
  preview?: Preview
  result?: Result
  problems?: string[]
}

/** The test of one node of a workflow, with values given by hand and the pinned samples of the other nodes. */
export const workflowTestPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/workflows/{workflow_id}/test',
    formOf: 'testNodeOfWorkflow',
    handler: async (view) => page(view, await workflowOf(view), { node: view.query.get('node') ?? '' }),
  },
  {
    method: 'POST',
    path: '/workflows/{workflow_id}/test',
    async handler(view) {
      const workflow = await workflowOf(view)
      const { form, call } = view
      const [node, inputs] = [form.get('node'), form.get('inputs')]
      const parsed = parseInputs(inputs)
      if (parsed === undefined)
        return page(view, workflow, { node, inputs, problems: ['The values are not a JSON object.'] }, 422)
      const confirm = form.get('do') === 'test'
      const path = `/app/v1/workflows/${workflow.workflow_id}/nodes/${encodeURIComponent(node)}/test`
      const answer = await call('POST', path, { inputs: parsed, confirm })
      const shown = { node, inputs }
      if (answer.status >= 400) {
        const { byField, others } = errorsOf(answer, [])
        const problems = [...others, ...[...byField.values()].flat()]
        return page(view, workflow, { ...shown, problems }, answer.status)
      }
      if (confirm) return page(view, workflow, { ...shown, result: answer.body as unknown as Result })
      return page(view, workflow, { ...shown, preview: answer.body.preview as Preview })
    },
  },
  {
    method: 'POST',
    path: '/workflows/{workflow_id}/samples',
    async handler(view) {
      const { form, params, call } = view
      const node = form.get('node')
      const here = `/workflows/${params.workflow_id}/test?node=${encodeURIComponent(node)}`
      const path = `/app/v1/workflows/${params.workflow_id}/samples/${encodeURIComponent(node)}`
      const answer =
        form.get('do') === 'forget'
          ? await call('DELETE', path)
          : await call('PUT', path, { output: parseJson(form.get('output')) })
      if (answer.status < 400) return { redirect: `${here}&done=saved` }
      const { others } = errorsOf(answer, [])
      return page(view, await workflowOf(view), { node, problems: others }, answer.status)
    },
  },
]

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An empty text has no values. */
function parseInputs(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text.trim() || '{}')
  return isObject(value) ? value : undefined
}

async function page(view: View, workflow: Workflow, shown: Shown, status = 200): Promise<Page> {
  const { nodes } = workflow.definition
  const here = `/workflows/${workflow.workflow_id}`
  const samples = await view.readIfAllowed<List<Sample>>(`/app/v1${here}/samples`)
  const { node = '', inputs = skeleton(workflow), problems = [], preview, result } = shown
  return {
    title: `Test ${workflow.name}`,
    status,
    content: (
      <>
        <PageHeader
          title={<WorkflowTitle workflow={workflow} />}
          crumbs={[HERE]}
          about={`Tests one node of version ${workflow.version}, the newest one that is saved.`}
        />
        <Tabs workflow={workflow} current="Test" />
        {problems.map((problem) => (
          <p class="notice red" role="alert" key={problem}>
            {problem}
          </p>
        ))}
        <div class="columns">
          <div class="stack">
            <PostForm action={`${here}/test`} class="form" label="Test a node">
              <div class="field">
                <label for="f-node">Node</label>
                <select id="f-node" name="node">
                  {nodes.map(({ id, type }) => (
                    <option value={id} selected={id === node} key={id}>
                      {`${id} (${type})`}
                    </option>
                  ))}
                </select>
              </div>
              <div class="field">
                <label for="f-inputs">Values that it reads</label>
                <textarea id="f-inputs" name="inputs" class="mono" rows={10} spellcheck={false} dir="ltr">
                  {inputs}
                </textarea>
                <p class="help">
                  JSON with the roots of the placeholders: <code>inputs</code>, <code>trigger</code>,{' '}
                  <code>item</code>, <code>nodes</code>. Outputs of other nodes that are absent here are their
                  samples.
                </p>
              </div>
              <div class="form-actions">
                <Button look="primary" name="do" value="preview">
                  Preview
                </Button>
                <Button name="do" value="test" icon="play">
                  Test it with its effects
                </Button>
              </div>
            </PostForm>
            {preview && <PreviewCard preview={preview} />}
            {result && (
              <ResultCard
                result={result}
                node={node}
                action={mayAuthor(view) ? `${here}/samples` : undefined}
              />
            )}
          </div>
          <SampleCard
            samples={samples?.data ?? []}
            action={mayAuthor(view) ? `${here}/samples` : undefined}
          />
        </div>
      </>
    ),
  }
}

/** The names of the inputs, to fill in. */
function skeleton({ definition }: Workflow): string {
  const inputs = Object.entries(definition.inputs ?? {}).map(([name, input]) => [name, input.default ?? null])
  return JSON.stringify({ inputs: Object.fromEntries(inputs) }, null, 2)
}

const PreviewCard = ({ preview: { effect, warnings, config, calls } }: { preview: Preview }) => (
  <Card title="Preview: nothing has happened yet">
    <Facts of={[['Effect', EFFECTS[effect] ?? effect]]} />
    <Notes texts={warnings} />
    {calls && calls.length > 0 && (
      <ul>
        {calls.map((text) => (
          <li key={text}>
            <code>{text}</code>
          </li>
        ))}
      </ul>
    )}
    <Json value={config} label="the config" />
  </Card>
)

function ResultCard({ result, node, action }: { result: Result; node: string; action: string | undefined }) {
  const { status, output, handle, rendered_config, duration_ms, warnings = [], log = [], error } = result
  const text = JSON.stringify(output ?? null)
  return (
    <Card title={<Status of={status} />} actions={<Duration ms={duration_ms} />}>
      {error && (
        <p class="notice red" role="alert">
          {error.message} <code>{error.code}</code>
        </p>
      )}
      <Notes texts={warnings} />
      {handle && <Facts of={[['Leaves by', <code key="handle">{handle}</code>]]} />}
      <h3>Output</h3>
      <Json value={output ?? null} label="the output" />
      {action && status === 'completed' && text.length <= MOST_KEPT && (
        <PostForm action={action} class="inline">
          <input type="hidden" name="node" value={node} />
          <input type="hidden" name="output" value={text} />
          <Button>Keep it as the sample of {node}</Button>
        </PostForm>
      )}
      <h3>Config with its values</h3>
      <Json value={rendered_config ?? null} label="the config" />
      {log.length > 0 && (
        <ul>
          {log.map(({ message }, i) => (
            <li key={i}>
              <code>{message}</code>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

/** Larger outputs are pinned by the API, from a run. */
const MOST_KEPT = 20_000

const Notes = ({ texts }: { texts: string[] }) =>
  texts.length === 0 ? null : (
    <ul class="notice amber">
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  )

const SampleCard = ({ samples, action }: { samples: Sample[]; action: string | undefined }) => (
  <Card title="Samples" flush>
    {samples.length === 0 ? (
      <p class="muted">
        No node has a sample yet. Test a node, and keep its output: the tests of the nodes after it read it.
      </p>
    ) : (
      <Table
        label="Samples"
        rows={samples}
        keyOf={({ node_id }) => node_id}
        columns={[
          { title: 'Node', cell: ({ node_id }) => <code>{node_id}</code> },
          { title: 'Output', cell: ({ output }) => <code title={shown(output)}>{shown(output)}</code> },
          { title: 'Kept', cell: ({ updated_at }) => <Time at={updated_at} /> },
          {
            title: '',
            cell: ({ node_id }) =>
              action && (
                <PostForm action={action} class="inline" label={`Forget the sample of ${node_id}`}>
                  <input type="hidden" name="node" value={node_id} />
                  <Button name="do" value="forget">
                    Forget
                  </Button>
                </PostForm>
              ),
          },
        ]}
      />
    )}
  </Card>
)

const shown = (output: unknown) => (JSON.stringify(output) ?? '').slice(0, 200)
