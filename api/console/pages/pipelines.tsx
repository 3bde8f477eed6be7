import type { Pipeline } from '../../../db/model/records/pipelines/pipeline.ts'
import { PRESETS } from '../../../db/model/records/pipelines/presets.ts'
import { LinkButton } from '../components/button.tsx'
import { Chips } from '../components/chips.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { Table } from '../components/table.tsx'
import { mayCall } from '../forms/allowed.ts'
import { errorsOf } from '../forms/errors.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

export const PIPELINES = '/settings/pipelines'
const NAMES = ['label', 'name', 'preset']
/** A new pipeline begins with the stages of a preset, which its page changes. */
const NEW = fieldsOf('createPipeline', NAMES, {
  preset: 'Stages to begin with',
  name: 'Name in the API',
}).map((field) => (field.name === 'name' ? field : { ...field, required: true }))
const FIRST = Object.keys(PRESETS)[0]!

/** The pipelines of deals. */
export const pipelineListPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: PIPELINES,
    handler: async (view) => listPage(view, await view.read<List<Pipeline>>('/app/v1/pipelines')),
  },
  {
    method: 'GET',
    path: `${PIPELINES}/new`,
    formOf: 'createPipeline',
    handler: async () => formPage({ stored: { preset: FIRST } }),
  },
  {
    method: 'POST',
    path: PIPELINES,
    async handler({ form, call }) {
      const answer = await call('POST', '/app/v1/pipelines', toBody(NEW, form, { omitEmpty: true }))
      if (answer.status >= 400)
        return formPage({ typed: form, errors: errorsOf(answer, NAMES) }, answer.status)
      return { redirect: `${PIPELINES}/${(answer.body as unknown as Pipeline).id}?done=created` }
    },
  },
]

const listPage = ({ session }: View, pipelines: List<Pipeline>): Page => ({
  title: 'Pipelines',
  content: (
    <>
      <PageHeader
        title="Pipelines"
        about="The stages that deals go through, until they are won or lost. Each stage has a probability, and may require fields."
      >
        {mayCall(session!.role, 'createPipeline') && (
          <LinkButton href={`${PIPELINES}/new`} look="primary" icon="plus">
            New pipeline
          </LinkButton>
        )}
      </PageHeader>
      <Table
        label="Pipelines"
        rows={pipelines.data}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Name',
            cell: ({ id, label, is_default }) => (
              <>
                <a href={`${PIPELINES}/${id}`} dir="auto" title={label}>
                  {label}
                </a>
                {is_default && <span class="muted"> default</span>}
              </>
            ),
          },
          { title: 'In the API', cell: ({ name }) => <code title={name}>{name}</code> },
          {
            title: 'Stages',
            cell: ({ stages }) => (
              <span title={stages.map(({ label }) => label).join(' → ')}>
                <Chips of={stages.map(({ label }) => label)} />
              </span>
            ),
          },
        ]}
      />
    </>
  ),
})

const formPage = (state: FormState, status = 200): Page => ({
  title: 'New pipeline',
  status,
  content: (
    <>
      <PageHeader title="New pipeline" crumbs={[{ href: PIPELINES, label: 'Pipelines' }]} />
      <SchemaForm
        action={PIPELINES}
        fields={NEW}
        state={state}
        button="Make the pipeline"
        cancel={PIPELINES}
        label="New pipeline"
      />
    </>
  ),
})
