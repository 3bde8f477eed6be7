import { Button, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Code, Copyable } from '../components/code.tsx'
import { ColumnChart } from '../components/column-chart.tsx'
import { Empty } from '../components/empty.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { SchemaForm } from '../components/schema-form.tsx'
import { ShareBar } from '../components/share-bar.tsx'
import { Status } from '../components/status.tsx'
import { Table } from '../components/table.tsx'
import { Tabs } from '../components/tabs.tsx'
import { Duration, Time } from '../components/time.tsx'
import type { FieldSpec } from '../forms/field-spec.ts'
import { Form } from '../forms/form.ts'
import type { ConsoleRoute } from '../route.ts'

const STATUSES = [
  'queued',
  'running',
  'waiting',
  'paused',
  'completed',
  'failed',
  'cancelled',
  'DRAFT',
  'active',
]

const field = (name: string, rest: Partial<FieldSpec>): FieldSpec => ({
  name,
  label: name,
  help: '',
  type: 'text',
  choices: [],
  required: false,
  max: undefined,
  references: undefined,
  nullable: true,
  initial: null,
  ...rest,
})

const FIELDS = [
  field('Text', { required: true, help: 'Help is below the field, with `code` in it.' }),
  field('Long text', { type: 'long_text' }),
  field('Choice', { type: 'choice', choices: ['one', 'two'] }),
  field('Box', { type: 'boolean', initial: false }),
  field('Date', { type: 'date' }),
]

const NAMES = ['Ada Lovelace', 'عبد الرحمن بن محمد', `${'A very long name '.repeat(8)}👩‍🚀`]

const CHARTED = [
  { name: 'completed', values: [3, 5, 2, null, 8] },
  { name: 'failed', values: [0, 1, null, null, 2] },
  { name: 'others', values: [1, 0, 0, null, 1] },
]

const Chart = ({ series, isStacked }: { series: typeof CHARTED; isStacked: boolean }) => (
  <ColumnChart
    label="Example"
    buckets={['1 Nov', '2 Nov', '3 Nov', '4 Nov', '5 Nov']}
    series={series}
    text={(value) => String(value ?? 0)}
    axis={(value) => String(value ?? 0)}
    unit="count"
    isStacked={isStacked}
  />
)

/** Every component in its states, to look at when one changes. */
export const designRoutes: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/design',
    async handler() {
      const now = new Date().toISOString()
      const errors = { byField: new Map([['Text', ['is required']]]), others: ['The service refused it.'] }
      return {
        title: 'Design',
        content: (
          <>
            <PageHeader
              title="Design"
              crumbs={[{ href: '/', label: 'Home' }]}
              about="Every component of the console in its states."
            >
              <LinkButton href="/design" look="primary" icon="plus">
                Primary action
              </LinkButton>
            </PageHeader>
            <Card title="Buttons">
              <div class="actions">
                <Button look="primary">Primary</Button>
                <Button>Plain</Button>
                <Button look="danger">Danger</Button>
                <button class="button plain" type="button" disabled title="Choose something first">
                  Disabled
                </button>
                <ConfirmButton
                  action="/design"
                  question="This deletes 3 records."
                  confirm="Delete"
                  look="danger"
                >
                  With a question
                </ConfirmButton>
              </div>
            </Card>
            <Card title="Statuses">
              <div class="actions">
                {STATUSES.map((status) => (
                  <Status of={status} key={status} />
                ))}
              </div>
            </Card>
            <Card title="Notices">
              <p class="notice">Information.</p>
              <p class="notice green">
                <Icon name="circle-check" /> Saved.
              </p>
              <p class="notice amber">
                <Icon name="triangle-alert" /> Look at this.
              </p>
              <p class="notice red">
                <Icon name="circle-x" /> This failed.
              </p>
              <Refusal of={{ status: 409, body: { error: { message: 'A refusal', hint: 'what to do' } } }} />
            </Card>
            <Tabs
              label="Example"
              tabs={['One', 'Two'].map((label) => ({ href: `/design?tab=${label}`, label }))}
              current="/design?tab=One"
            />
            <div class="charts">
              <Card title="Columns">
                <Chart series={CHARTED} isStacked />
              </Card>
              <Card title="Lines">
                <Chart series={CHARTED} isStacked={false} />
              </Card>
              <Card title="Shares">
                {([0, 0.3, 0.85, 1.2] as const).map((share) => (
                  <ShareBar
                    key={share}
                    of={share}
                    tone={share >= 1 ? 'red' : share >= 0.8 ? 'amber' : 'accent'}
                  />
                ))}
              </Card>
            </div>
            <div class="columns">
              <Card title="Form with errors">
                <SchemaForm
                  action="/design"
                  fields={FIELDS}
                  state={{ typed: new Form([['Long text', 'What was typed stays.']]), errors }}
                  button="Save"
                  cancel="/design"
                  label="Example"
                />
              </Card>
              <div class="stack">
                <Card title="Facts">
                  <Facts
                    of={[
                      ['Name', 'Ada'],
                      ['Empty', null],
                      [
                        'Id',
                        <Copyable text="01890a5d-ac96-774b-bcce-b302099a8057" label="the id" key="id" />,
                      ],
                      ['When', <Time at={now} key="when" />],
                      ['Took', <Duration ms={1_234} key="took" />],
                    ]}
                  />
                </Card>
                <Card title="Code">
                  <Code text={'curl http://localhost:8080/v1/me'} label="an example" />
                </Card>
                <Card>
                  <Empty icon="inbox" title="Nothing here yet">
                    <p>What belongs here, and why one would want it.</p>
                    <LinkButton href="/design" look="primary">
                      Make one
                    </LinkButton>
                  </Empty>
                </Card>
              </div>
            </div>
            <Table
              label="Example"
              rows={NAMES}
              keyOf={(name) => name}
              columns={[
                {
                  title: 'Name',
                  sort: 'name',
                  cell: (name) => (
                    <a href="/design" dir="auto" title={name}>
                      {name}
                    </a>
                  ),
                },
                { title: 'Status', cell: () => <Status of="completed" /> },
                { title: 'Amount', align: 'right', cell: () => '1,250.00 EUR' },
              ]}
            />
          </>
        ),
      }
    },
  },
]
