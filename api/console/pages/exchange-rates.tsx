import { ActionButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { DateFilter, Filters } from '../components/filters.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { type Column, Table } from '../components/table.tsx'
import { mayCall } from '../forms/allowed.ts'
import { CURRENCY_CHOICES } from '../forms/choices.ts'
import { errorsOf } from '../forms/errors.ts'
import type { FieldSpec } from '../forms/field-spec.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'

interface Rate {
  currency: string
  base: string
  rate: string
  valid_from: string | null
  source: string
}

const HERE = '/settings/exchange-rates'
const [DAY] = fieldsOf('setExchangeRates', ['valid_from'], { valid_from: 'From the day on' })
/** One member of `rates`. */
const ONE = { ...DAY!, choices: [], required: true, help: '', type: 'text' as const }
const fieldsFor = (base: string): FieldSpec[] => [
  { ...ONE, name: 'currency', label: 'Currency', type: 'choice' },
  { ...ONE, name: 'rate', label: `Units of ${base} for one of it`, help: 'A decimal such as `1.0825`.' },
  DAY!,
]

/** The rates by which amounts of several currencies compare. */
export const exchangeRatePages: ConsoleRoute[] = [
  { method: 'GET', path: HERE, handler: (view) => page(view, {}) },
  {
    method: 'POST',
    path: HERE,
    async handler(view) {
      const { form, call } = view
      const [currency, rate, day] = ['currency', 'rate', 'valid_from'].map((name) => form.get(name).trim())
      const body = { rates: { [currency!]: rate }, ...(day && { valid_from: day }) }
      const answer = await call('PUT', '/app/v1/exchange-rates', body)
      if (answer.status < 400) return { redirect: `${HERE}?done=saved` }
      const { byField, others } = errorsOf(answer, ['rates', 'valid_from'])
      const errors = {
        byField: new Map([...byField].map(([name, texts]) => [name === 'rates' ? 'rate' : name, texts])),
        others,
      }
      return page(view, { typed: form, errors }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${HERE}/remove`,
    async handler({ form, change }) {
      const body = { rates: { [form.get('currency')]: null }, valid_from: form.get('valid_from') }
      await change('PUT', '/app/v1/exchange-rates', body)
      return { redirect: `${HERE}?done=removed` }
    },
  },
]

async function page(view: View, state: FormState, status?: number): Promise<Page> {
  const day = view.query.get('day')
  const [answer, organization] = await Promise.all([
    view.call('GET', `/app/v1/exchange-rates${day ? `?${new URLSearchParams({ day })}` : ''}`),
    view.read<{ currency: string }>('/app/organization'),
  ])
  const rates = answer.status < 400 ? (answer.body as unknown as List<Rate>).data : undefined
  const own = rates?.filter(({ source }) => source === 'own') ?? []
  const others = rates?.filter(({ source }) => source !== 'own') ?? []
  const base = organization.currency
  const may = mayCall(view.session!.role, 'setExchangeRates')
  return {
    title: 'Exchange rates',
    status: status ?? answer.status,
    content: (
      <>
        <PageHeader
          title="Exchange rates"
          about={`Filters, sorts and totals compare amounts of several currencies by their worth in ${base}, the currency of the organization. Rates of your own count before those that ship with the service.`}
        />
        <Filters>
          <DateFilter name="day" label="As they count on" />
        </Filters>
        {!rates && <Refusal of={answer} />}
        {rates && (
          <Card title="Your own rates" flush>
            {own.length === 0 ? (
              <p class="muted">None: the rates that ship with the service count.</p>
            ) : (
              <Table
                label="Your own rates"
                rows={own}
                keyOf={({ currency }) => currency}
                columns={[
                  ...columns,
                  { title: '', align: 'right', cell: (rate) => may && <Remove of={rate} /> },
                ]}
              />
            )}
          </Card>
        )}
        {may && (
          <Card title="Set a rate">
            <SchemaForm
              action={HERE}
              fields={fieldsFor(base)}
              state={state}
              options={{ currency: CURRENCY_CHOICES.filter(({ id }) => id !== base) }}
              button="Set the rate"
              label="Set a rate"
            />
          </Card>
        )}
        {others.length > 0 && (
          <Card title="Rates that ship with the service" flush>
            <Table
              label="Rates that ship with the service"
              rows={others}
              keyOf={({ currency }) => currency}
              columns={columns}
            />
          </Card>
        )}
      </>
    ),
  }
}

const columns: Column<Rate>[] = [
  { title: 'Currency', cell: ({ currency }) => currency },
  { title: 'Rate', align: 'right', cell: ({ rate }) => rate },
  { title: 'Into', cell: ({ base }) => base },
  {
    title: 'Since',
    cell: ({ valid_from, source }) => valid_from ?? (source === 'fixed' ? 'fixed by law' : ''),
  },
]

const Remove = ({ of: { currency, valid_from } }: { of: Rate }) => (
  <div class="row-actions">
    <ActionButton action={`${HERE}/remove`} fields={{ currency, valid_from: valid_from ?? '' }}>
      Remove
    </ActionButton>
  </div>
)
