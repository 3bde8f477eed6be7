import type { Pipeline } from '../../../db/model/records/pipelines/pipeline.ts'
import { ActionButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { ErrorSummary, Field, Marked } from '../components/field.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Refusal } from '../components/refusal.tsx'
import { StageTable } from '../components/stage-table.tsx'
import { mayCall } from '../forms/allowed.ts'
import { errorsOf, type FormErrors, NO_ERRORS } from '../forms/errors.ts'
import { fieldsOf, itemFieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import { rowsIn, rowsOf, type StageRow, stagesBody } from '../records/stage-rows.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { PIPELINES } from './pipelines.tsx'

const [LABEL] = fieldsOf('updatePipeline', ['label'], { label: 'Name' })
export const STAGE_FIELDS = itemFieldsOf('updatePipeline', 'stages', [
  'label',
  'name',
  'probability',
  'outcome',
  'required_fields',
])
const HELP = STAGE_FIELDS.filter(({ name, help }) => help && name !== 'label')

/** A pipeline: its name, its stages with what becomes of the deals of removed ones, and its deletion. */
export const pipelinePages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: `${PIPELINES}/{pipeline_id}`,
    handler: async (view) => page(view, await read(view), {}),
  },
  {
    method: 'POST',
    path: `${PIPELINES}/{pipeline_id}`,
    async handler(view) {
      const { form, call, params } = view
      const body = { ...toBody([LABEL!], form), ...stagesBody(form) }
      const headers = { 'if-match': `"${form.get('version')}"` }
      const answer = await call('PATCH', apiPath(params.pipeline_id!), body, headers)
      if (answer.status < 400) return { redirect: `${PIPELINES}/${params.pipeline_id}?done=saved` }
      const names = ['label', ...body.stages.map((_, i) => `stages.${i}`)]
      return page(view, await read(view), { errors: errorsOf(answer, names) }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${PIPELINES}/{pipeline_id}/default`,
    async handler({ change, params }) {
      await change('PATCH', apiPath(params.pipeline_id!), { is_default: true })
      return { redirect: `${PIPELINES}/${params.pipeline_id}?done=saved` }
    },
  },
  {
    method: 'POST',
    path: `${PIPELINES}/{pipeline_id}/delete`,
    async handler(view) {
      const { call, params, form } = view
      const to = form.get('move_to')
      const query = to ? `?${new URLSearchParams({ move_to: to })}` : ''
      const answer = await call('DELETE', apiPath(params.pipeline_id!) + query)
      if (answer.status < 400) return { redirect: `${PIPELINES}?done=removed` }
      return page(view, await read(view), { refusal: answer }, answer.status)
    },
  },
]

const apiPath = (id: string) => `/app/v1/pipelines/${encodeURIComponent(id)}`

interface Read {
  pipeline: Pipeline
  others: Pipeline[]
}

async function read({ read, params }: View): Promise<Read> {
  const [pipeline, all] = await Promise.all([
    read<Pipeline>(apiPath(params.pipeline_id!)),
    read<List<Pipeline>>('/app/v1/pipelines'),
  ])
  return { pipeline, others: all.data.filter(({ id }) => id !== pipeline.id) }
}

interface State {
  /** The errors of the form, which then shows what was typed. */
  errors?: FormErrors
  /** The refusal of another action. */
  refusal?: Awaited<ReturnType<View['call']>>
}

function page(view: View, { pipeline, others }: Read, { errors, refusal }: State, status = 200): Page {
  const { form, session } = view
  const may = mayCall(session!.role, 'updatePipeline')
  const path = `${PIPELINES}/${pipeline.id}`
  const rows = errors ? rowsIn(form) : rowsOf(pipeline.stages)
  return {
    title: pipeline.label,
    status,
    content: (
      <>
        <PageHeader
          title={<span dir="auto">{pipeline.label}</span>}
          crumbs={[{ href: PIPELINES, label: 'Pipelines' }]}
          about={
            <>
              <code>{pipeline.name}</code> in the API.{' '}
              {pipeline.is_default ? 'Deals without another pipeline are in this one.' : ''}
            </>
          }
        >
          {may && !pipeline.is_default && (
            <ActionButton action={`${path}/default`}>Make it the default</ActionButton>
          )}
        </PageHeader>
        {refusal && <Refusal of={refusal} />}
        <PostForm action={path} class="form wide-form" label={pipeline.label}>
          <ErrorSummary errors={errors ?? NO_ERRORS} labels={labelsOf(rows)} />
          <input
            type="hidden"
            name="version"
            value={errors ? form.get('version') : String(pipeline.version)}
          />
          <Field
            spec={{ ...LABEL!, required: true }}
            value={{ text: errors ? form.get('label') : pipeline.label }}
            errors={errors?.byField.get('label')}
          />
          <StageTable
            rows={rows}
            fields={STAGE_FIELDS}
            stages={pipeline.stages}
            errors={errors ?? NO_ERRORS}
          />
          <div class="helps">
            {HELP.map(({ name, label, help }) => (
              <p class="help" key={name}>
                <strong>{label}</strong>:{' '}
                <Marked text={help.replace(' One per line.', ' Separated by commas.')} />
              </p>
            ))}
          </div>
          {may && (
            <div class="form-actions">
              <button type="submit" class="button primary">
                Save
              </button>
              <a class="button plain" href={PIPELINES}>
                Cancel
              </a>
            </div>
          )}
        </PostForm>
        {may && !pipeline.is_default && <Deletion path={path} others={others} />}
      </>
    ),
  }
}

/** Errors of a stage are named by its place in the body. */
const labelsOf = (rows: readonly StageRow[]) =>
  new Map([
    ['label', LABEL!.label],
    ...rows
      .filter(({ isSent }) => isSent)
      .map(({ label, name }, i): [string, string] => [`stages.${i}`, `Stage “${label || name}”`]),
  ])

const Deletion = ({ path, others }: { path: string; others: Pipeline[] }) => (
  <Card title="Delete the pipeline">
    <PostForm action={`${path}/delete`} class="form" label="Delete the pipeline">
      <div class="field">
        <label for="f-move_to">Where its deals go</label>
        <select id="f-move_to" name="move_to">
          <option value="">It has no deals: do not delete it otherwise</option>
          {others.map(({ id, label }) => (
            <option value={id} key={id}>
              {label}
            </option>
          ))}
        </select>
        <p class="help">
          Each deal goes to the stage of the same name there, or to the first one with the same outcome.
        </p>
      </div>
      <div class="form-actions">
        <button type="submit" class="button danger">
          Delete the pipeline
        </button>
      </div>
    </PostForm>
  </Card>
)
