import { LOG_ACTIONS, LOG_STATUSES } from '../../../db/model/incoming/log.ts'
import type { LogEntry } from '../pages/incoming-logs.tsx'
import type { List } from '../route.ts'
import { Empty } from './empty.tsx'
import { ChoiceFilter, DateFilter, Filters, TextFilter } from './filters.tsx'
import { Status } from './status.tsx'
import { Paging, Table } from './table.tsx'
import { Duration, Time } from './time.tsx'

/** The requests to an incoming webhook; `href`: the page of one is below it. */
export function IncomingLog({ href, log }: { href: string; log: List<LogEntry> }) {
  return (
    <>
      <Filters>
        <ChoiceFilter name="status" choices={LOG_STATUSES} />
        <ChoiceFilter name="action" choices={LOG_ACTIONS} />
        <TextFilter name="source_ip" label="Source IP" />
        <DateFilter name="from" label="From (UTC)" />
        <DateFilter name="to" label="To (UTC)" />
      </Filters>
      {log.data.length === 0 ? (
        <Empty icon="inbox" title="No request">
          <p>None matches. Each request to the URL is listed here, also those that are refused.</p>
        </Empty>
      ) : (
        <>
          <Table
            label="Log"
            rows={log.data}
            keyOf={(entry) => entry.id}
            columns={[
              {
                title: 'Received',
                cell: (entry) => (
                  <a href={`${href}/${entry.id}`}>
                    <Time at={entry.created_at} />
                  </a>
                ),
              },
              { title: 'Source IP', cell: ({ source_ip }) => <code>{source_ip}</code> },
              { title: 'Status', cell: ({ status }) => <Status of={status} /> },
              { title: 'Action', cell: ({ action }) => action },
              {
                title: 'Size',
                align: 'right',
                cell: ({ payload_size }) => `${payload_size.toLocaleString('en')} B`,
              },
              {
                title: 'Took',
                align: 'right',
                cell: ({ response_time_ms: ms }) => <Duration ms={Math.round(ms)} />,
              },
              { title: 'Error', cell: (entry) => <ErrorOf entry={entry} /> },
            ]}
          />
          <Paging list={log} />
        </>
      )}
    </>
  )
}

const ErrorOf = ({ entry: { error, message } }: { entry: LogEntry }) =>
  error ? <span title={message ?? error}>{message ?? error}</span> : null
