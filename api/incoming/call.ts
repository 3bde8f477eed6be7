import type Koa from 'koa'
import { insertFoldedLog, insertRefusalLog, type NewLog } from '../../db/incoming/logs.ts'
import type { Receiver } from '../../db/incoming/receiving.ts'
import type { Mapped } from '../../db/model/incoming/mapping/types.ts'
import type { Redactor } from '../../workflows/shared/redactor.ts'
import { forLog } from '../http/errors.ts'
import type { Refusal } from './answer.ts'
import { decompressed } from './decompress.ts'
import { type Delivery, deliveryOf } from './delivery-id.ts'
import { describeRequest } from './log-row.ts'
import type { Target } from './request-url.ts'
import type { IncomingDeps } from './together.ts'

/** The state of one request. The log row is built from it. */
export interface Call {
  ctx: Koa.Context
  deps: IncomingDeps
  webhook: Receiver
  target: Target
  sourceIp: string
  started: number
  /** The valid secrets. */
  secrets: string[]
  mask: Redactor
  /** The body as received. */
  bytes?: Buffer
  /** The same without its compression, once it was verified. */
  content?: Buffer
  delivery?: Delivery
  verified: boolean
  mapped?: Mapped
}

/** The log row of an accepted request, without its outcome. `keepsRest`: as in `describeRequest`. */
export function baseLog(call: Call, keepsRest = false): NewLog {
  const { ctx, webhook, sourceIp, started, bytes, content, verified, mapped, mask } = call
  const { headers } = ctx.req
  const { verification } = webhook
  return {
    webhook_id: webhook.id,
    source_ip: sourceIp,
    status: 'Success',
    action: null,
    http_status: 200,
    response_time_ms: Math.round((performance.now() - started) * 10) / 10,
    error: null,
    message: null,
    error_details: undefined,
    mapped_data: mapped && { entity: webhook.target_entity.toLowerCase(), ...mapped },
    record_id: null,
    run_id: null,
    warnings: mapped?.warnings ?? [],
    ...describeRequest({ headers, bytes, content, verification, verified, mask, keepsRest }),
    ...(verified && bytes ? (call.delivery ?? deliveryOf(headers, verification, bytes)) : NO_DELIVERY),
    replay_of: null,
    replay_id: null,
  }
}

const NO_DELIVERY = { fingerprint: null, has_delivery_id: false }

/** Logs a set-up request, which writes nothing else. */
export async function logSetUp(call: Call, message: string): Promise<void> {
  const { deps, webhook } = call
  const row = { ...baseLog(call), action: 'Skipped', message } as const
  await insertRefusalLog(deps.db.system, webhook.organization_id, row)
}

/** Never throws: a failure to write the log row must not change the answer to the sender. */
export async function logRefusal(call: Call, refusal: Refusal): Promise<void> {
  const { deps, webhook } = call
  const { organization_id, block_log_id } = webhook
  // Blocked before its body was read as its sender meant it: a replay needs that.
  if (call.verified && call.bytes && refusal.logStatus === 'Blocked')
    call.content ??= await decompressed(call.ctx.req, call.bytes).catch(() => call.bytes!)
  // Beyond the rate limit there can be any number of them.
  const row: NewLog = {
    ...baseLog(call, refusal.code !== 'rate_limited'),
    status: refusal.logStatus,
    http_status: refusal.status,
    error: refusal.code,
    message: refusal.message,
    error_details: refusal.details,
  }
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
