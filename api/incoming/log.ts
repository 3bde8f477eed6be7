import type { IncomingHttpHeaders } from 'node:http'
import type { Delivery } from '../../db/incoming/deliveries.ts'
import { insertFoldedLog, insertRefusalLog } from '../../db/incoming/logs.ts'
import type { Receiver } from '../../db/incoming/receiving.ts'
import { logOf, millisecondsSince, type NewLog, type RequestLog } from '../../db/model/incoming/log.ts'
import { senderHeaders } from '../../db/model/incoming/mapping/senders/index.ts'
import { textOfBody } from '../../db/model/incoming/parse-body.ts'
import { withoutSecrets } from '../../db/model/incoming/secret-fields.ts'
import { firstCharacters } from '../../db/model/records/values.ts'
import { sealRequest } from '../../db/process/sealed-request.ts'
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
  const row = rowOf(call, { action: 'Skipped', message })
  await insertRefusalLog(deps.db.system, webhook.organization_id, row)
}

/** Those of a batch are logged each. Never throws: a failure to write the log row must not change the answer to the sender. */
export async function logRefusal(call: Call, refusal: Refusal): Promise<void> {
  if (refusal.results) return
  const { deps, webhook } = call
  const { organization_id, block_log_id } = webhook
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
  const row = rowOf(call, outcome, { keepsRest: refusal.code !== 'rate_limited' })
  const write = () =>
    refusal.code === 'blocked' && block_log_id
      ? insertFoldedLog(deps.db.system, organization_id, block_log_id, row)
      : insertRefusalLog(deps.db.system, organization_id, row)
  await write()
    .catch(write)
    .catch((error) =>
      deps.log.error(
        { err: forLog(error), organization: organization_id, webhook: webhook.id, outcome: refusal.code },
        'cannot write the log row of an incoming webhook',
      ),
    )
}

/** The log row of a request that was not accepted. `keepsRest`: whether it may be replayed, which needs all of it. */
export function rowOf(call: Call, outcome: Partial<NewLog>, { keepsRest = false } = {}): NewLog {
  const { webhook, started, mapped, hidden } = call
  const row = logOf(
    { ...describeRequest(call, { keepsRest }), ...(deliveryIn(call) ?? NO_DELIVERY) },
    {
      response_time_ms: millisecondsSince(started),
      mapped_data: mapped && { entity: RECORD_KINDS[webhook.kind], ...mapped },
      warnings: mapped?.warnings ?? [],
      ...outcome,
    },
  )
  return withoutSecrets(hidden, row)
}

const NO_DELIVERY = { fingerprint: null, has_delivery_id: false }

/** The delivery id of a verified request. Anybody could choose the one of an unverified request. */
function deliveryIn({ ctx, webhook, verified, bytes, delivery }: Call): Delivery | undefined {
  if (!verified || !bytes) return undefined
  return delivery ?? deliveryOf(ctx.req.headers, webhook.verification, bytes)
}

/** The columns of a log row that describe the request, without its delivery. */
export function describeRequest(call: Call, { keepsRest = false } = {}): Omit<RequestLog, keyof Delivery> {
  const {
    ctx,
    webhook,
    sourceIp,
    verified,
    mask,
    bytes,
    content = bytes,
    contentType,
    isLogBrief = false,
  } = call
  const { headers } = ctx.req
  const type = contentType ?? headers['content-type']
  const whole = content && textOfBody(content, type ?? '').replaceAll('\0', '\uFFFD')
  const original = whole === undefined ? null : mask.text(whole)
  const text = original && shownText(call, original)
  const kept = text && firstCharacters(text, verified && !isLogBrief ? MAX_PAYLOAD : MAX_BRIEF)
  const isMasked = text !== original
  const isKept = verified && !isLogBrief && (keepsRest || original!.length <= MAX_PAYLOAD)
  const sealed = isKept && original !== null ? sealedIfMasked(call, original, isMasked) : null
  return {
    webhook_id: webhook.id,
    source_ip: sourceIp,
    headers: maskHeaders(headers, webhook, mask),
    content_type: type === undefined ? null : firstCharacters(mask.text(type), MAX_VALUE),
    payload: kept,
    payload_truncated: kept !== text || (isMasked && sealed === null),
    payload_rest:
      keepsRest && verified && !isLogBrief && !sealed && kept !== text ? text!.slice(kept!.length) : null,
    payload_sealed: sealed,
    verified,
    payload_size: bytes?.length ?? declaredSize(headers['content-length']),
  }
}

/** The text of a body for the log. One that was not parsed is masked as a whole: a secret can be anywhere in it. */
function shownText({ webhook, hidden, mask }: Call, original: string): string {
  if (webhook.secret_fields.length === 0) return original
  if (!hidden) return MASK
  return hidden.isFound ? mask.text(JSON.stringify(hidden.payload)) : original
}

/** The request for its replay, if the log does not have all that a replay reads. */
function sealedIfMasked({ ctx, deps, webhook }: Call, text: string, isMasked: boolean): string | null {
  const { organization_id, secret_headers, secret_fields } = webhook
  const headers = senderHeaders(ctx.req.headers)
  if (!isMasked && !secret_headers.some((name) => headers[name])) return null
  return sealRequest(deps.secretsKey, organization_id, { text, headers, secret_fields })
}

/** The size that the sender states, where the body was not read. */
function declaredSize(header = '0'): number {
  const size = Number(header)
  return Number.isSafeInteger(size) && size >= 0 ? size : 0
}

function maskHeaders(
  headers: IncomingHttpHeaders,
  { verification, secret_headers }: Pick<Receiver, 'verification' | 'secret_headers'>,
  mask: Redactor,
): Record<string, string> {
  const own = verification.type === 'hmac' ? verification.header.toLowerCase() : undefined
  return Object.fromEntries(
    Object.entries(headers)
      .slice(0, MAX_HEADERS)
      .map(([name, value]) => [
        name.slice(0, MAX_NAME),
        name === own || isSecretName(name) || secret_headers.includes(name)
          ? MASK
          : firstCharacters(mask.text(String(value)), MAX_VALUE),
      ]),
  )
}
