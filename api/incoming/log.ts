import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { v7 as uuidv7 } from 'uuid'
import type { Delivery } from '../../db/incoming/deliveries.ts'
import { insertFoldedLog, insertRefusalLogs } from '../../db/incoming/logs.ts'
import type { Receiver } from '../../db/incoming/receiving.ts'
import {
  logOf,
  millisecondsSince,
  type NewLog,
  type RequestContext,
  type RequestLog,
} from '../../db/model/incoming/log.ts'
import { senderHeaders } from '../../db/model/incoming/mapping/senders/index.ts'
import { textOfBody } from '../../db/model/incoming/parse-body.ts'
import { withoutSecrets } from '../../db/model/incoming/secret-fields.ts'
import { entityOf } from '../../db/model/incoming/target-entity.ts'
import { firstCharacters } from '../../db/model/records/values.ts'
import { sealRequest } from '../../db/process/sealed-request.ts'
import type { Redactor } from '../../workflows/shared/redactor.ts'
import { isSecretName, MASK } from '../../workflows/shared/secret-names.ts'
import { subnetOf } from '../http/client-ip.ts'
import { forLog } from '../http/errors.ts'
import type { Refusal } from './answer.ts'
import type { Call } from './call.ts'
import { deliveryOf } from './delivery-id.ts'
import { deliveryOfRecord, mapRequest } from './map-request.ts'
import { readContent } from './read-content.ts'

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

/**
 * Each record of a batch has its own log row. Never throws: a failed log row must not change the answer to the sender.
 */
export async function logRefusal(call: Call, refusal: Refusal): Promise<void> {
  if (refusal.results) return
  const { deps, webhook } = call
  const { organization_id } = webhook
  const row = await refusalRow(call, refusal)
  const foldedId = foldedIdOf(call, refusal)
  await persistently(call, refusal.code, () =>
    foldedId === undefined
      ? insertRefusalLogs(deps.db.system, organization_id, [row])
      : insertFoldedLog(deps.db.system, organization_id, foldedId, row),
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
        { err: forLog(error), organization_id: webhook.organization_id, webhook_id: webhook.id, outcome },
        'cannot write the log row of an incoming webhook',
      ),
    )
}

/** The log row of a refusal. */
export async function refusalRow(call: Call, refusal: Refusal): Promise<NewLog> {
  // Blocked before its body was read as its sender meant it: a replay needs that.
  if (call.verified && call.bytes && refusal.logStatus === 'Blocked') {
    if (!call.content) await readContent(call, call.bytes).catch(() => undefined)
    call.content ??= call.bytes
    call.delivery ??= await deliveryOfUnread(call, call.bytes, refusal)
  }
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

/** The delivery of a request whose body was not parsed. A replay of it and a retry of its sender must be the same. */
async function deliveryOfUnread(call: Call, bytes: Buffer, { code }: Refusal): Promise<Delivery | undefined> {
  // Beyond the rate limit there can be any number of them, and a body that is larger than this cannot be replayed.
  if (code === 'rate_limited' && call.content!.length > MAX_PAYLOAD) return undefined
  const parsed = await mapRequest(call).catch(() => undefined)
  return parsed && !parsed.isBatch ? deliveryOfRecord(call, bytes, parsed.records[0]!) : undefined
}

/** The entry that similar requests share. Anybody can send them, and they prove nothing. */
function foldedIdOf({ webhook, sourceIp }: Call, { code }: Refusal): string | undefined {
  if (code === 'blocked') return webhook.block_log_id ?? undefined
  if (code !== 'method_not_allowed') return undefined
  const minute = Date.now() - (Date.now() % 60_000)
  const random = createHash('sha256')
    .update(`${webhook.id} ${subnetOf(sourceIp)}`)
    .digest()
    .subarray(0, 16)
  return uuidv7({ msecs: minute, random })
}

/** The log row of a request that was not accepted. `keepsRest`: whether it may be replayed, which needs all of it. */
export function rowOf(call: Call, outcome: Partial<NewLog>, { keepsRest = false } = {}): NewLog {
  const { webhook, started, mapped, hidden } = call
  const row = logOf(
    { ...describeRequest(call, { keepsRest }), ...(deliveryIn(call) ?? NO_DELIVERY) },
    {
      response_time_ms: millisecondsSince(started),
      mapped_data: mapped && { entity: entityOf(webhook.kind), ...mapped },
      warnings: mapped?.warnings ?? [],
      ...outcome,
    },
  )
  return withoutSecrets(hidden, row)
}

const NO_DELIVERY = { fingerprint: null, has_delivery_id: false }

/** The delivery id of a verified request. Anybody could choose the one of an unverified request. */
function deliveryIn({ ctx, webhook, verified, bytes, delivery }: Call) {
  if (!verified || !bytes) return undefined
  const { fingerprint, has_delivery_id } =
    delivery ?? deliveryOf(ctx.req.headers, webhook.verification, bytes)
  return { fingerprint, has_delivery_id }
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
  const isKept = verified && !isLogBrief && original !== null && (keepsRest || original.length <= MAX_PAYLOAD)
  const sealed = isKept ? sealedIfMasked(call, original, isMasked) : null
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
    context: contextOf(call),
    payload_size: bytes?.length ?? declaredSize(headers['content-length']),
  }
}

/** The allowed headers and query parameters of a request, without secrets. */
function contextOf({ ctx, target, webhook, mask }: Call): RequestContext | null {
  const { trigger_headers, trigger_query } = webhook
  if (trigger_headers.length === 0 && trigger_query.length === 0) return null
  const shown = (value: string) => firstCharacters(mask.text(value).replaceAll('\0', '\uFFFD'), MAX_VALUE)
  const chosen = (names: string[], read: (name: string) => string | undefined) =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = read(name)
        return value === undefined ? [] : [[name, shown(value)]]
      }),
    )
  return {
    headers: chosen(trigger_headers, (name) => ctx.req.headers[name]?.toString()),
    query: chosen(trigger_query, (name) => target.query.get(name) ?? undefined),
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
