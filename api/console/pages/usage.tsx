import type { CountedLimit } from '../../../db/access/usage.ts'
import { bytesText } from '../components/bytes.tsx'
import { Card } from '../components/card.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { SchemaForm } from '../components/schema-form.tsx'
import { ShareBar } from '../components/share-bar.tsx'
import { Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { mayCall } from '../forms/allowed.ts'
import { labelOf } from '../forms/field-spec.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { toBody } from '../forms/to-body.ts'
import type { ConsoleRoute, Page, View } from '../route.ts'

interface Counted {
  used: number | null
  limit: number | null
}

interface Usage {
  plan: string
  month: { from: string; to: string }
  limits: Record<CountedLimit, Counted>
  storage: {
    used: number
    limit: number | null
    measured: Record<string, number>
    measured_at: string | null
  }
  held_for_quota: number
}

const HERE = '/settings/usage'
const PLAN = fieldsOf('changePlan', ['plan'])

const count = (amount: number) => amount.toLocaleString('en')

/** What each limit counts, and in what. */
const LIMITS: Record<CountedLimit, [label: string, text: (amount: number) => string]> = {
  incoming_per_month: ['Requests to incoming webhooks this month', count],
  outgoing_per_month: ['Deliveries of outgoing webhooks this month', count],
  incoming_webhooks: ['Incoming webhooks', count],
  outgoing_webhooks: ['Outgoing webhooks', count],
  max_running: ['Active runs', count],
  incoming_per_minute: ['Requests this minute, busiest webhook', count],
  requests_per_minute: ['Requests this minute to the API', count],
  file_bytes: ['Files', bytesText],
  largest_file: ['Largest file', bytesText],
}

/** What the plan allows and what is used of it; owners change the plan. */
export const usagePages: ConsoleRoute[] = [
  { method: 'GET', path: HERE, handler: (view) => page(view) },
  {
    method: 'POST',
    path: HERE,
    async handler(view) {
      const answer = await view.call('PUT', '/app/organization/plan', toBody(PLAN, view.form))
      return answer.status < 400 ? { redirect: `${HERE}?done=saved` } : page(view, answer)
    },
  },
]

async function page(view: View, refusal?: Awaited<ReturnType<View['call']>>): Promise<Page> {
  const { plan, month, limits, storage, held_for_quota: held } = await view.read<Usage>('/app/usage')
  return {
    title: 'Plan and usage',
    status: refusal?.status ?? 200,
    content: (
      <>
        <PageHeader
          title="Plan and usage"
          about={
            <>
              The plan is <strong>{plan}</strong>. The month that counts ends <Time at={month.to} />.
            </>
          }
        />
        {refusal && <Refusal of={refusal} />}
        {held > 0 && (
          <p class="notice amber">
            {held.toLocaleString('en')} deliveries are held for the quota. They are sent when the month or the
            plan changes.
          </p>
        )}
        <Card title="Used of the plan" flush>
          <Amounts label="Used of the plan" of={counted(limits)} />
        </Card>
        <Card
          title="Storage"
          actions={
            storage.measured_at && (
              <span class="muted">
                measured <Time at={storage.measured_at} />
              </span>
            )
          }
          flush
        >
          <Amounts label="Storage" of={stored(storage)} />
        </Card>
        {mayCall(view.session!.role, 'changePlan') && (
          <Card title="Change the plan">
            <SchemaForm
              action={HERE}
              fields={PLAN}
              state={refusal ? { typed: view.form } : { stored: { plan } }}
              button="Change the plan"
              label="Change the plan"
            />
          </Card>
        )}
      </>
    ),
  }
}

interface Amount {
  label: string
  used: number | null
  limit: number | null
  text: (amount: number) => string
}

const counted = (limits: Usage['limits']): Amount[] =>
  (Object.entries(limits) as [CountedLimit, Counted][]).map(([name, { used, limit }]) => {
    const [label, text] = LIMITS[name]
    return { label, used, limit, text }
  })

/** All that is stored, of what the plan allows; then each kind, of all. */
const stored = ({ used, limit, measured }: Usage['storage']): Amount[] => [
  { label: 'All', used, limit, text: bytesText },
  ...Object.entries(measured)
    .sort(([, a], [, b]) => b - a)
    .map(([kind, bytes]) => ({ label: labelOf(kind), used: bytes, limit: used, text: bytesText })),
]

/** Amounts, each with the share of its limit as a bar. */
const Amounts = ({ label, of: amounts }: { label: string; of: Amount[] }) => (
  <Table
    label={label}
    rows={amounts}
    keyOf={(amount) => amount.label}
    columns={[
      { title: 'What', cell: (amount) => <strong title={amount.label}>{amount.label}</strong> },
      {
        title: 'Used',
        align: 'right',
        cell: ({ used, text }) => (used === null ? <span class="muted">not counted</span> : text(used)),
      },
      {
        title: 'Of',
        align: 'right',
        cell: ({ limit, text }) => (limit === null ? <span class="muted">no limit</span> : text(limit)),
      },
      {
        title: 'Share',
        cell: ({ used, limit }) => (used !== null && limit ? <Share used={used} limit={limit} /> : ''),
      },
    ]}
  />
)

function Share({ used, limit }: { used: number; limit: number }) {
  const share = used / limit
  return (
    <span class="share-of">
      <ShareBar of={share} tone={share >= 1 ? 'red' : share >= 0.8 ? 'amber' : 'accent'} />
      {`${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`}
    </span>
  )
}
