import { Button, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Status } from '../components/status.tsx'
import { Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { labelOf } from '../forms/field-spec.ts'
import { mayWrite } from '../pages/record-list.tsx'
import type { RecordSchema } from '../records/record.ts'
import { schemaOf } from '../records/record.ts'
import type { Page, View } from '../route.ts'
import { MappingForm } from './mapping-form.tsx'
import type { Import, Refusal } from './shapes.ts'

export const IMPORTS = { href: '/imports', label: 'Imports' }

const isOpen = ({ status }: Import) => status === 'queued' || status === 'running'

/** Rows were written: its mapping cannot change any more. */
const hasWritten = ({ dry_run, started_at }: Import) => started_at !== null && !dry_run

/** An import in the step where it is: its file, its mapping, its progress, its result. */
export async function importPage(view: View, one: Import, refusal: Refusal = {}): Promise<Page> {
  const schema = await schemaOf(view, one.entity)
  const here = `/imports/${one.id}`
  const may = mayWrite(view, one.entity)
  const isReady = may && one.file?.available === true && !isOpen(one) && !hasWritten(one)
  const { problems = [] } = refusal
  return {
    title: `Import of ${one.entity}`,
    status: refusal.status ?? 200,
    content: (
      <>
        <PageHeader
          title={
            <>
              Import of {labelOf(one.entity).toLowerCase()} <Status of={one.status} />
            </>
          }
          crumbs={[IMPORTS]}
        >
          {may && <ImportActions one={one} />}
        </PageHeader>
        {problems.length > 0 && (
          <div class="notice red" role="alert" tabIndex={-1} data-focus>
            <ul>
              {problems.map((problem) => (
                <li key={problem}>{problem}</li>
              ))}
            </ul>
          </div>
        )}
        {one.error && (
          <p class="notice red">{[one.error.message, one.error.hint].filter(Boolean).join(': ')}</p>
        )}
        {one.file && <Facts of={factsOf(one)} />}
        {one.started_at && <Progress one={one} />}
        {one.preview && one.preview.length > 0 && <Preview rows={one.preview} schema={schema} />}
        {may && !one.file && <UploadCard here={here} />}
        {isReady && <MappingForm one={one} schema={schema} refusal={refusal} />}
      </>
    ),
  }
}

const signOf = (delimiter: string) => (delimiter === '\t' ? 'tabs' : `“${delimiter}”`)

const factsOf = ({ file, mode, by }: Import): [string, string][] => [
  ['Rows', file!.rows.toLocaleString('en')],
  ['Columns', String(file!.columns.length)],
  [
    'Records that exist',
    mode === 'upsert' ? `are changed, found by ${by}` : 'stay: each row makes a new one',
  ],
  [
    'Read as',
    file!.source
      ? `an export of ${file!.source}`
      : `${file!.encoding}, cells apart by ${signOf(file!.delimiter)}`,
  ],
]

function Progress({ one }: { one: Import }) {
  const { progress, file, dry_run, started_at, ended_at } = one
  const { rows, created, updated, skipped, failed } = progress
  const total = file?.rows ?? rows
  const would = dry_run ? 'would be ' : ''
  return (
    <Card title={dry_run ? 'Trial: nothing was written' : 'Progress'}>
      {isOpen(one) && (
        <div data-poll="1500">
          <progress value={rows} max={Math.max(1, total)} aria-label="Rows that were read" />
          <p class="muted">
            {rows.toLocaleString('en')} of {total.toLocaleString('en')} rows. You can leave this page: it goes
            on.
          </p>
          <noscript>
            <a href={`/imports/${one.id}`}>Show the newest state</a>
          </noscript>
        </div>
      )}
      <Facts
        of={[
          [`${labelOf(`${would}created`)}`, created.toLocaleString('en')],
          [`${labelOf(`${would}updated`)}`, updated.toLocaleString('en')],
          ['Skipped', skipped.toLocaleString('en')],
          [
            'Failed',
            failed > 0 ? (
              <>
                {failed.toLocaleString('en')}{' '}
                <a href={`/app/v1/imports/${one.id}/errors`} download>
                  Download the failed rows
                </a>
              </>
            ) : (
              '0'
            ),
          ],
          ['Begun', <Time at={started_at} key="started" />],
          ...(ended_at
            ? [['Ended', <Time at={ended_at} key="ended" />] as [string, ReturnType<typeof Time>]]
            : []),
        ]}
      />
      {failed > 0 && (
        <p class="help">
          The file of the failed rows says why in its last column: correct it, and import it again.
        </p>
      )}
    </Card>
  )
}

function Preview({ rows, schema }: { rows: NonNullable<Import['preview']>; schema: RecordSchema }) {
  return (
    <Card title="What the first rows would change" flush>
      <Table
        label="The first rows"
        rows={rows}
        keyOf={({ row }) => String(row)}
        columns={[
          { title: 'Line', align: 'right', cell: ({ line }) => line },
          {
            title: 'Record',
            cell: ({ action, record_id }) =>
              record_id && action !== 'created' ? (
                <a href={`/records/${schema.entity}/${record_id}`}>{action}</a>
              ) : (
                action
              ),
          },
          {
            title: 'Changes',
            cell: ({ changes }) => (
              <span class="wrapping" dir="auto">
                {Object.entries(changes)
                  .map(([name, value]) => `${labelOf(name)}: ${shown(value)}`)
                  .join(' · ')}
              </span>
            ),
          },
        ]}
      />
    </Card>
  )
}

/** A value of a new record, or what a field changes from and to. */
function shown(value: unknown): string {
  const text = (one: unknown) => (typeof one === 'string' ? one : (JSON.stringify(one) ?? ''))
  if (typeof value === 'object' && value !== null && 'to' in value) {
    const { from, to } = value as { from?: unknown; to: unknown }
    return `${from === null || from === undefined ? '' : `${text(from)} → `}${text(to)}`.slice(0, 200)
  }
  return text(value).slice(0, 200)
}

const UploadCard = ({ here }: { here: string }) => (
  <Card title="File">
    <PostForm action={`${here}/file`} class="form" label="Choose the file" hasFile>
      <div class="field">
        <label for="f-file">CSV with a header, at most 32 MiB</label>
        <input id="f-file" name="file" type="file" accept=".csv,.tsv,.txt,text/csv" required />
      </div>
      <div class="form-actions">
        <Button look="primary">Read the file</Button>
      </div>
    </PostForm>
  </Card>
)

function ImportActions({ one }: { one: Import }) {
  const here = `/imports/${one.id}`
  if (isOpen(one))
    return (
      <ConfirmButton
        action={`${here}/stop`}
        question="Rows that were written stay. It can be resumed."
        confirm="Stop the import"
      >
        Stop
      </ConfirmButton>
    )
  if (!hasWritten(one)) return null
  return (
    <>
      <LinkButton href={`/records/${one.entity}`}>Show the records</LinkButton>
      {(one.status === 'stopped' || one.status === 'failed') && (
        <PostForm action={`${here}/resume`} class="inline" label="Resume">
          <Button>Resume</Button>
        </PostForm>
      )}
      <PostForm action={`${here}/undo`} class="inline" label="Undo">
        <Button look="danger">Undo…</Button>
      </PostForm>
    </>
  )
}
