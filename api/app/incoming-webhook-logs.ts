import { exportLogs, getLog, listLogs } from '../../db/incoming/logs.ts'
import { getIncomingWebhook } from '../../db/incoming/webhooks.ts'
import { leastRole } from '../../db/model/access/roles.ts'
import type { LogDetail } from '../../db/model/incoming/log.ts'
import { listEnvelope, offsetOf, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import {
  logDetailSchema,
  logExportQuery,
  logParams,
  logQuery,
  logSchema,
  params,
} from './incoming-webhook-schemas.ts'

const tag = 'Incoming webhooks'

/** The log of incoming webhooks. */
export const incomingWebhookLogRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/webhooks/incoming/{webhook_id}/logs',
    role: leastRole('webhooks:read'),
    id: 'listIncomingWebhookLogs',
    tag,
    summary: 'List log entries',
    description: 'Lists the received requests of an incoming webhook, newest first.',
    params,
    query: logQuery,
    response: { status: 200, schema: listEnvelope(logSchema) },
    handler: (request) =>
      request.tenant(async (tx) => {
        const { limit, offset: _, cursor, ...filters } = request.query
        const { webhook_id } = request.params
        await getIncomingWebhook(tx, webhook_id)
        const page = await listLogs(tx, webhook_id, filters, {
          limit,
          cursor,
          offset: offsetOf(request.query),
        })
        const data = page.data.map((entry) => ({ object: 'incoming_webhook_log', ...entry }))
        return presentList({ ...page, data })
      }),
  }),
  appRoute({
    method: 'GET',
    path: '/webhooks/incoming/{webhook_id}/logs/export',
    role: leastRole('webhooks:read'),
    id: 'exportIncomingWebhookLogs',
    tag,
    summary: 'Download the log entries',
    description:
      'Returns the columns of the list as CSV in UTF-8 (RFC 4180), newest first. A cell that a spreadsheet could read as a formula is prefixed with an apostrophe.',
    params,
    query: logExportQuery,
    response: { status: 200, file: 'text/csv', description: 'The log entries.' },
    handler: async ({ params: { webhook_id }, query, tenant }) => {
      await tenant((tx) => getIncomingWebhook(tx, webhook_id))
      return {
        name: `incoming-webhook-logs-${webhook_id}.csv`,
        content: exportLogs(tenant, webhook_id, query),
      }
    },
  }),
  appRoute({
    method: 'GET',
    path: '/webhooks/incoming/{webhook_id}/logs/{log_id}',
    role: leastRole('webhooks:read'),
    id: 'getIncomingWebhookLog',
    tag,
    summary: 'Retrieve a log entry',
    description:
      'Returns the request with its headers (secrets masked), the first 65,536 characters of the payload, the mapped data and the result. `replay_problem` says whether the request can be replayed.',
    params: logParams,
    response: { status: 200, schema: logDetailSchema },
    handler: (request) =>
      request.tenant(async (tx) => {
        const entry = await getLog(tx, request.params.webhook_id, request.params.log_id)
        return { object: 'incoming_webhook_log', ...entry, result: resultOf(entry) }
      }),
  }),
]

function resultOf({ status, error, message, mapped_data, action, record_id }: LogDetail) {
  if (status !== 'Success') return { success: false, error, message }
  // A challenge is not mapped.
  const { entity = null } = (mapped_data ?? {}) as { entity?: string | null }
  return { success: true, message, entity, action: action?.toLowerCase(), record_id }
}
