import { OWN_REASONS } from '../../../db/mails/suppressions.ts'
import { ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Empty } from '../components/empty.tsx'
import { ChoiceFilter, Filters, TextFilter } from '../components/filters.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { errorsOf } from '../forms/errors.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

interface Suppression {
  id: string
  address: string
  reason: string
  created_at: string
}

const ROOT = '/settings/mail-suppressions'
const FILTERS = ['address', 'reason']
const FIELDS = fieldsOf('addMailSuppression', ['address']).map((field) => ({
  ...field,
  type: 'email' as const,
}))

/** The addresses that get no mails of workflows. */
export const mailSuppressionPages: ConsoleRoute[] = [
  { method: 'GET', path: ROOT, formOf: 'listMailSuppressions', handler: (view) => page(view, {}) },
  {
    method: 'POST',
    path: ROOT,
    async handler(view) {
      const answer = await view.call(
        'POST',
        '/app/mail-suppressions',
        toBody(FIELDS, view.form, { omitEmpty: true }),
      )
      if (answer.status < 400) return { redirect: `${ROOT}?done=saved` }
      return page(view, { typed: view.form, errors: errorsOf(answer, ['address']) }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${ROOT}/{suppression_id}/remove`,
    async handler({ change, params }) {
      await change('DELETE', `/app/mail-suppressions/${params.suppression_id}`)
      return { redirect: `${ROOT}?done=removed` }
    },
  },
]

async function page(view: View, state: FormState, status?: number): Promise<Page> {
  const answer = await view.call('GET', pageOf(view, '/app/mail-suppressions', FILTERS))
  const list = answer.status < 400 ? (answer.body as unknown as List<Suppression>) : undefined
  const isFiltered = FILTERS.some((name) => view.query.get(name))
  return {
    title: 'Suppressed addresses',
    status: status ?? answer.status,
    content: (
      <>
        <PageHeader
          title="Suppressed addresses"
          about="They get no mails of the workflows. Mails about accounts, such as password resets, are sent anyway."
        />
        <Filters>
          <TextFilter name="address" />
          <ChoiceFilter name="reason" choices={OWN_REASONS} />
        </Filters>
        {!list && <Refusal of={answer} />}
        {list && list.data.length > 0 && <Addresses of={list} />}
        {list?.data.length === 0 && isFiltered && (
          <Empty icon="search" title="No address matches">
            <LinkButton href={ROOT}>Show all</LinkButton>
          </Empty>
        )}
        {list?.data.length === 0 && !isFiltered && (
          <Empty icon="mail" title="Nobody is suppressed">
            <p>Who uses the link to unsubscribe in a mail of a workflow is here.</p>
          </Empty>
        )}
        <Card title="Suppress an address">
          <SchemaForm
            action={ROOT}
            fields={FIELDS}
            state={state}
            button="Suppress the address"
            label="Suppress an address"
          />
        </Card>
      </>
    ),
  }
}

const Addresses = ({ of: list }: { of: List<Suppression> }) => (
  <>
    <Table
      label="Suppressed addresses"
      rows={list.data}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Address', cell: ({ address }) => <strong title={address}>{address}</strong> },
        {
          title: 'Why',
          cell: ({ reason }) => (reason === 'added' ? 'added here' : 'unsubscribed by the link in a mail'),
        },
        { title: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
        {
          title: '',
          align: 'right',
          cell: ({ id, address, reason }) => (
            <div class="row-actions">
              <ConfirmButton
                action={`${ROOT}/${id}/remove`}
                question={
                  reason === 'added'
                    ? `Workflows mail ${address} again.`
                    : `${address} has unsubscribed. Only mail this person again if the person asked for it: the audit log keeps that you did this.`
                }
                confirm="Mail the address again"
              >
                Remove
              </ConfirmButton>
            </div>
          ),
        },
      ]}
    />
    <Paging list={list} />
  </>
)
