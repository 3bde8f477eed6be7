import type { Delivery } from '../pages/deliveries.tsx'
import type { List } from '../route.ts'
import { Empty } from './empty.tsx'
import { Status } from './status.tsx'
import { Paging, Table } from './table.tsx'
import { Time } from './time.tsx'

/** The deliveries of outgoing webhooks. */
export function DeliveryTable({ deliveries }: { deliveries: List<Delivery> }) {
  if (deliveries.data.length === 0)
    return (
      <Empty icon="send" title="No delivery">
        <p>None matches. Each event that is sent is a delivery; a test event makes one at once.</p>
      </Empty>
    )
  return (
    <>
      <Table
        label="Deliveries"
        rows={deliveries.data}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Event',
            cell: ({ id, event, test }) => (
              <>
                <a href={`/settings/deliveries/${id}`}>{event}</a>
                {test && <span class="muted"> test</span>}
              </>
            ),
          },
          { title: 'Status', cell: ({ status }) => <Status of={status} /> },
          { title: 'HTTP', align: 'right', cell: ({ http_status }) => http_status ?? '' },
          { title: 'Attempts', align: 'right', cell: ({ attempt_count }) => attempt_count },
          { title: 'Next attempt', cell: ({ next_attempt_at: at }) => (at ? <Time at={at} /> : '') },
          { title: 'Error', cell: ({ error }) => error && <span title={error}>{error}</span> },
          { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
      />
      <Paging list={deliveries} />
    </>
  )
}
