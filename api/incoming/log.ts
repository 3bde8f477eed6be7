import type { IncomingHttpHeaders } from 'node:http'
import type { Delivery } from '../../db/incoming/deliveries.ts'
import { insertFoldedLog, insertRefusalLogs } from '../../db/incoming/logs.ts'
import { logOf, millisecondsSince, type NewLog, type RequestLog } from '../../db/model/incoming/log.ts'
import { textOfBody } from '../../db/model/incoming/parse-body.ts'
import type { Verification } from '../../db/model/incoming/types.ts'
import { firstCharacters } from '../../db/model/records/values.ts'
import { RECORD_KINDS } from '../../workflows/shared/record-kinds.ts'
import type { Redactor } from '../../workflows/shared/redactor.ts'
import { isSecretName, MASK } from '../../workflows/shared/secret-names.ts'
import { forLog } from '../http/errors.ts'
import type { Refusal } from './answer.ts'
import type { Call } from './call.ts'
import { decompressed } from './decompress.ts'
import { deliveryOf } from './delivery-id.ts'

/** Stored characters of a payload, by whether the sender is verified. */
const MAX_PAYLOAD = 65_536
const MAX_BRIEF = 2_048
/** Stored headers, and the characters of a name and a value: anybody can send 16 KiB of them. */
const MAX_HEADERS = 50
const MAX_NAME = 100
const MAX_VALUE = 500

/** Logs a set-up request, which writes nothing else. */
export async function logSetUp(call: Call, message: string): Promise<void> {
  const { deps, webhook } = call
  await insertRefusalLogs(deps.db.system, webhook.organization_id, [setUpRow(call, message)])
}

/** The log row of a request or record that writes nothing else. */
export const setUpRow = (call: Call, message: string): NewLog => rowOf(call, { action: 'Skipped', message })

/** Those of a batch are logged each. Never throws: a failure to write the log row must not change the answer to the sender. */
export async function logRefusal(call: Call, refusal: Refusal): Promise<void> {
  if (refusal.results) return
  const { deps, webhook } = call
  const { organization_id, block_log_id } = webhook
  const row = await refusalRow(call, refusal)
  await persistently(call, refusal.code, () =>
    refusal.code === 'blocked' && block_log_id
      ? insertFoldedLog(deps.db.system, organization_id, block_log_id, row)
      : insertRefusalLogs(deps.db.system, organization_id, [row]),
  )
}

/** Rows of one statement: each may have the 16 KiB of the headers of its request. */
const ROWS = 200

/** Logs the records of a batch that were not accepted. Never throws. */
export async function logRows(call: Call, rows: readonly NewLog[]): Promise<void> {
  const { deps, webhook } = call
  for (let start = 0; start < rows.length; start += ROWS)
    await persistently(call, 'batch', () =>
      insertRefusalLogs(deps.db.system, webhook.organization_id, rows.slice(start, start + ROWS)),
    )
}

async function persistently({ deps, webhook }: Call, outcome: string, write: () => Promise<void>) {
  await write()
    .catch(write)
    .catch((error) =>
      deps.log.error(
        { err: forLog(error), organization: webhook.organization_id, webhook: webhook.id, outcome },
        'cannot write the log row of an incoming webhook',
      ),
    )
}

/** The log row of a refusal. */
export async function refusalRow(call: Call, refusal: Refusal): Promise<NewLog> {
  // Blocked before its body was read as its sender meant it: a replay needs that.
  if (call.verified && call.bytes && refusal.logStatus === 'Blocked')
    call.content ??= await decompressed(call.ctx.req, call.bytes).catch(() => call.bytes!)
  const outcome = {
    status: refusal.logStatus,
    http_status: refusal.status,
    error: refusal.code,
    message: refusal.message,
    error_details: refusal.details,
  }
  // Beyond the rate limit there can be any number of them.
  return rowOf(call, outcome, { keepsRest: refusal.code !== 'rate_limited' })
}

/** The log row of a request that was not accepted. `keepsRest`: whether it may be replayed, which needs all of it. */
export function rowOf(call: Call, outcome: Partial<NewLog>, { keepsRest = false } = {}): NewLog {
  const { webhook, started, mapped } = call
  return logOf(
    { ...describeRequest(call, { keepsRest }), ...(deliveryIn(call) ?? NO_DELIVERY) },
    {
      response_time_ms: millisecondsSince(started),
      mapped_data: mapped && { entity: RECORD_KINDS[webhook.kind], ...mapped },
      warnings: mapped?.warnings ?? [],
      ...outcome,
    },
  )
}

const NO_DELIVERY = { fingerprint: null, has_delivery_id: false }

/** The delivery id of a verified request. Anybody could choose the one of an unverified request. */
function deliveryIn({ ctx, webhook, verified, bytes, delivery }: Call): Delivery | undefined {
  if (!verified || !bytes) return undefined
  return delivery ?? deliveryOf(ctx.req.headers, webhook.verification, bytes)
}

/** The columns of a log row that describe the request, without its delivery. */
export function describeRequest(
  { ctx, webhook, sourceIp, verified, mask, bytes, content = bytes, contentType, isLogBrief = false }: Call,
  { keepsRest = false } = {},
): Omit<RequestLog, keyof Delivery> {
  const { headers } = ctx.req
  const type = contentType ?? headers['content-type']
  const whole = content && textOfBody(content, type ?? '').replaceAll('\0', '\uFFFD')
  const text = whole === undefined ? null : mask.text(whole)
  const kept = text && firstCharacters(text, verified && !isLogBrief ? MAX_PAYLOAD : MAX_BRIEF)
  return {
    webhook_id: webhook.id,
    source_ip: sourceIp,
    headers: maskHeaders(headers, webhook.verification, mask),
    content_type: type === undefined ? null : firstCharacters(mask.text(type), MAX_VALUE),
    payload: kept,
    payload_truncated: kept !== text,
    payload_rest: keepsRest && verified && !isLogBrief && kept !== text ? text!.slice(kept!.length) : null,
    verified,
    payload_size: bytes?.length ?? declaredSize(headers['content-length']),
  }
}

/** The size that the sender states, where the body was not read. */
function declaredSize(header = '0'): number {
  const size = Number(header)
  return Number.isSafeInteger(size) && size >= 0 ? size : 0
}

function maskHeaders(
  headers: IncomingHttpHeaders,
  verification: Verification,
  mask: Redactor,
): Record<string, string> {
  const own = verification.type === 'hmac' ? verification.header.toLowerCase() : undefined
  return Object.fromEntries(
    Object.entries(headers)
      .slice(0, MAX_HEADERS)
      .map(([name, value]) => [
        name.slice(0, MAX_NAME),
        name === own || isSecretName(name) ? MASK : firstCharacters(mask.text(String(value)), MAX_VALUE),
      ]),
  )
}
