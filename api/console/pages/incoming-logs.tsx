import { Card, Facts } from '../components/card.tsx'
import { Json } from '../components/code.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Status } from '../components/status.tsx'
import { Duration, Time } from '../components/time.tsx'
import type { ConsoleRoute, Page } from '../route.ts'

export interface LogEntry {
  id: string
  webhook_id: string
  created_at: string
  source_ip: string
  status: string
  action: string | null
  http_status: number
  payload_size: number
  response_time_ms: number
  error: string | null
  message: string | null
  record_id: string | null
  run_id: string | null
  warnings: string[]
}

interface Details extends LogEntry {
  headers: Record<string, string>
  payload: string | null
  payload_truncated: boolean
  mapped_data: unknown
  result: { entity?: string | null } | null
  error_details: unknown
}

/** One request to an incoming webhook: what came, what became of it, and what was answered. */
export const incomingLogPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: '/settings/webhooks/incoming/{webhook_id}/logs/{log_id}',
    async handler({ read, params }) {
      const { webhook_id, log_id } = params
      return page(await read<Details>(`/app/webhooks/incoming/${webhook_id}/logs/${log_id}`))
    },
  },
]

/** The plural of the log's `entity`. */
const KIND: Record<string, string> = {
  contact: 'contacts',
  company: 'companies',
  deal: 'deals',
  task: 'tasks',
}

function page(entry: Details): Page {
  const up = { href: `/settings/webhooks/incoming/${entry.webhook_id}`, label: 'Webhook' }
  const kind = KIND[entry.result?.entity ?? '']
  return {
    title: 'Request',
    content: (
      <>
        <PageHeader
          title="Request"
          crumbs={[{ href: '/settings/webhooks/incoming', label: 'Incoming webhooks' }, up]}
        />
        {entry.error && (
          <div class="notice red">
            <Icon name="circle-x" /> {entry.message ?? entry.error}
            {entry.error_details !== null && (
              <Json value={entry.error_details} label="the details of the error" />
            )}
          </div>
        )}
        {entry.warnings.map((warning) => (
          <p class="notice amber" key={warning}>
            <Icon name="triangle-alert" /> {warning}
          </p>
        ))}
        <Card title="Request">
          <Facts
            of={[
              ['Received', <Time at={entry.created_at} absolute key="at" />],
              ['Source IP', <code key="ip">{entry.source_ip}</code>],
              ['Status', <Status of={entry.status} key="status" />],
              ['Action', entry.action],
              ['Answered', `${entry.http_status}`],
              ['Took', <Duration ms={Math.round(entry.response_time_ms)} key="took" />],
              [
                'Record',
                entry.record_id && kind && (
                  <a href={`/records/${kind}/${entry.record_id}`}>Open the record</a>
                ),
              ],
              ['Run', entry.run_id && <a href={`/runs/${entry.run_id}`}>Open the run</a>],
            ].map(([name, value]) => [name as string, value || null])}
          />
        </Card>
        <div class="side-by-side">
          <Card title="What came">
            {entry.payload === null ? (
              <p class="muted">The payload is not stored.</p>
            ) : (
              <Json value={pretty(entry.payload)} label="the payload" />
            )}
            {entry.payload_truncated && <p class="muted">Only its beginning is stored.</p>}
          </Card>
          <Card title="What became of it">
            <Json value={entry.mapped_data} label="the mapped data" />
          </Card>
        </div>
        <Card title="Headers">
          <Json value={entry.headers} label="the headers" />
        </Card>
        <Card title="Answer">
          <Json value={entry.result} label="the answer" />
        </Card>
      </>
    ),
  }
}

/** JSON on one line is hard to read. */
function pretty(payload: string): unknown {
  try {
    return JSON.parse(payload)
  } catch {
    return payload
  }
}
