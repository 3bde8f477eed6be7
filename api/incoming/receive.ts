import type { IncomingMessage } from 'node:http'
import type Koa from 'koa'
import { insertLog, insertRefusalLog, type NewLog } from '../../db/incoming/logs.ts'
import { claimDelivery, findReceiver, type Receiver, storeDelivery } from '../../db/incoming/receiving.ts'
import type { Actor } from '../../db/postgres/tenancy.ts'
import { open } from '../../db/seal.ts'
import type { AppDeps } from '../deps.ts'
import { readBody } from '../http/body.ts'
import { clientIp, ipMatches } from '../http/client-ip.ts'
import { forLog } from '../http/errors.ts'
import { Refusal, secondsUntil, toDetails, toRefusal } from './answer.ts'
import { checkMapped } from './check-mapped.ts'
import { deliveryFingerprint } from './delivery-id.ts'
import { countFailure, showRate, takeQuota, takeRate } from './limits.ts'
import { describeRequest } from './log-row.ts'
import type { Mapped } from './mapping/types.ts'
import type { Payload } from './parse-body.ts'
import { type Saved, saveMapped } from './save.ts'
import { startWorkflow } from './start-workflow.ts'
import { isVerified } from './verify.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The state of one request. The log row is built from it. */
interface Call {
  ctx: Koa.Context
  deps: AppDeps
  webhook: Receiver
  sourceIp: string
  started: number
  bytes?: Buffer
  verified: boolean
  mapped?: Mapped
}

/**
 * POST /webhooks/incoming/{webhook_id}, from the bytes to the answer. Every outcome of a known webhook is logged. A
 * success is written in one transaction with its log row, so that a crash leaves all or nothing.
 */
export async function handleIncoming(ctx: Koa.Context, deps: AppDeps): Promise<void> {
  const started = performance.now()
  ctx.state.route = '/webhooks/incoming/{webhook_id}'
  const sourceIp = clientIp(ctx.req, deps.config.TRUSTED_PROXIES)
  let call: Call | undefined
  try {
    const webhook = await findWebhook(ctx, deps, sourceIp)
    call = { ctx, deps, webhook, sourceIp, started, verified: false }
    ctx.state.organization = webhook.organization_id
    ctx.body = await receive(call)
    ctx.status = 200
  } catch (error) {
    const refusal = toRefusal(error)
    if (refusal.status >= 500)
      deps.log.error({ err: forLog(error), request_id: ctx.state.requestId }, 'incoming webhook failed')
    if (call) await logRefusal(call, refusal)
    if (refusal.retryAfter !== undefined) ctx.set('Retry-After', String(refusal.retryAfter))
    ctx.status = refusal.status
    ctx.body = refusal.body
  }
}

async function findWebhook(ctx: Koa.Context, deps: AppDeps, sourceIp: string): Promise<Receiver> {
  const id = ctx.path.slice('/webhooks/incoming/'.length)
  const webhook = UUID.test(id) ? await findReceiver(deps.db.system, id, sourceIp) : undefined
  if (!webhook) throw new Refusal('not_found', 'webhook not found')
  if (ctx.method === 'POST') return webhook
  ctx.set('Allow', 'POST')
  throw new Refusal('method_not_allowed', 'webhooks accept POST only')
}

async function receive(call: Call): Promise<object> {
  const { ctx, deps, webhook, sourceIp } = call
  const { system } = deps.db

  await showRate(ctx, system, webhook)
  if (webhook.status !== 'Active') throw new Refusal('webhook_inactive', 'the webhook is inactive')
  if (webhook.ip_whitelist.length > 0 && !ipMatches(sourceIp, webhook.ip_whitelist))
    throw new Refusal('ip_not_allowed', 'the IP address is not on the whitelist')
  if (webhook.blocked_until)
    throw new Refusal('blocked', 'the IP address is temporarily blocked', {
      retryAfter: secondsUntil(webhook.blocked_until.getTime() / 1000),
    })

  const bytes = await readBody(ctx.req)
  call.bytes = bytes
  const secrets = [webhook.secret_sealed, webhook.previous_secret_sealed ?? []].flat()
  const opened = secrets.map((sealed) => open(deps.secretsKey, sealed))
  if (!isVerified(webhook.verification, ctx.req.headers, bytes, opened)) {
    await countFailure(system, webhook, sourceIp)
    throw new Refusal('invalid_secret', 'the webhook secret is missing or wrong')
  }
  call.verified = true

  await takeRate(ctx, system, webhook, sourceIp)
  await takeQuota(system, webhook)

  const type = contentType(ctx.req)
  const { payload, mapped } = await deps.compute.mapBody(webhook.organization_id, bytes, type, webhook)
  call.mapped = mapped
  validate(webhook, mapped)
  return write(call, payload, mapped, bytes)
}

function contentType(request: IncomingMessage): string {
  const encoding = request.headers['content-encoding']
  if (encoding && encoding !== 'identity')
    throw new Refusal('unsupported_media_type', 'compressed bodies are not accepted')
  return request.headers['content-type'] ?? ''
}

function validate(webhook: Receiver, mapped: Mapped): void {
  const checked = checkMapped(webhook.target_entity, mapped)
  if ('issues' in checked)
    throw new Refusal('validation_failed', 'the payload does not map to a valid record', {
      details: toDetails(checked.issues),
    })
  mapped.fields = checked.value as Record<string, unknown>
}

/** Writes the delivery, the record with its history and event, the run and the log row in one transaction. */
async function write(call: Call, payload: Payload, mapped: Mapped, bytes: Buffer): Promise<object> {
  const { deps, webhook, ctx } = call
  const actor: Actor = { type: 'webhook', id: webhook.id }
  const fingerprint = deliveryFingerprint(ctx.req.headers, webhook.verification, payload, bytes)
  return deps.db.tenant(webhook.organization_id, actor, async (tx) => {
    const earlier = fingerprint && (await claimDelivery(tx, webhook.id, fingerprint))
    if (earlier) {
      const message = 'already received'
      const warnings = ['duplicate delivery: nothing was written']
      await insertLog(tx, success(call, 'skipped', earlier.record_id, { message, warnings }))
      return { success: true, message, ...earlier }
    }
    const saved = await saveMapped(tx, webhook, mapped)
    const { runId, warning } = await startWorkflow(tx, webhook, payload, saved)
    const answer = {
      record_id: saved.record.id,
      entity: webhook.target_entity.toLowerCase(),
      action: saved.action,
    }
    if (fingerprint) await storeDelivery(tx, webhook.id, fingerprint, answer)
    const message = `${answer.entity} ${answer.action}`
    const warnings = [mapped.warnings ?? [], warning ?? []].flat()
    const more = { message, run_id: runId ?? null, warnings }
    await insertLog(tx, success(call, saved.action, saved.record.id, more))
    return { success: true, message, ...answer }
  })
}

function success(call: Call, action: Saved['action'], recordId: string, more: Partial<NewLog>): NewLog {
  const shown = { created: 'Created', updated: 'Updated', skipped: 'Skipped' } as const
  return { ...baseLog(call), action: shown[action], record_id: recordId, ...more }
}

/** Never throws: a failure to write the log row must not change the answer to the sender. */
async function logRefusal(call: Call, refusal: Refusal): Promise<void> {
  const { deps, webhook } = call
  const row: NewLog = {
    ...baseLog(call),
    status: refusal.logStatus,
    http_status: refusal.status,
    error: refusal.code,
    message: refusal.message,
    error_details: refusal.details,
  }
  const write = () => insertRefusalLog(deps.db.system, webhook.organization_id, row)
  await write()
    .catch(write)
    .catch((error) =>
      deps.log.error(
        {
          err: forLog(error),
          organization: webhook.organization_id,
          webhook: webhook.id,
          outcome: refusal.code,
        },
        'cannot write the log row of an incoming webhook',
      ),
    )
}

function baseLog(call: Call): NewLog {
  const { ctx, webhook, sourceIp, started, bytes, verified, mapped } = call
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
    ...describeRequest({ headers: ctx.req.headers, bytes, verification: webhook.verification, verified }),
  }
}
