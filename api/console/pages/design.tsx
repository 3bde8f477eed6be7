import { Button, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card, Facts } from '../components/card.tsx'
import { Code, Copyable } from '../components/code.tsx'
import { Empty } from '../components/empty.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { SchemaForm } from '../components/schema-form.tsx'
import { Status } from '../components/status.tsx'
import { Table } from '../components/table.tsx'
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
            </Card>
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
