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

/** One request on its way; what is known of it so far is what the log will say. */
interface Journey {
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
 * POST /webhooks/incoming/{webhook_id}: the whole journey of a request, from its bytes to its answer. Every outcome of
 * a known webhook is logged; what succeeds is written in one transaction with its log row, so that a process that dies
 * leaves all of it or nothing.
 */
export async function handleIncoming(ctx: Koa.Context, deps: AppDeps): Promise<void> {
  const started = performance.now()
  ctx.state.route = '/webhooks/incoming/{webhook_id}'
  const sourceIp = clientIp(ctx.req, deps.config.TRUSTED_PROXIES)
  let journey: Journey | undefined
  try {
    const webhook = await findWebhook(ctx, deps, sourceIp)
    journey = { ctx, deps, webhook, sourceIp, started, verified: false }
    ctx.state.organization = webhook.organization_id
    ctx.body = await receive(journey)
    ctx.status = 200
  } catch (error) {
    const refusal = toRefusal(error)
    if (refusal.status >= 500)
      deps.log.error({ err: forLog(error), request_id: ctx.state.requestId }, 'incoming webhook failed')
    if (journey) await logRefusal(journey, refusal)
    if (refusal.retryAfter !== undefined) ctx.set('Retry-After', String(refusal.retryAfter))
    // What is left of a body that was refused unread would be read for nothing: the connection ends instead.
    if (!ctx.req.complete) ctx.set('Connection', 'close')
    ctx.status = refusal.status
    ctx.body = refusal.body
  }
}

async function findWebhook(ctx: Koa.Context, deps: AppDeps, sourceIp: string): Promise<Receiver> {
  const id = ctx.path.slice('/webhooks/incoming/'.length)
  const webhook = UUID.test(id) ? await findReceiver(deps.db.system, id, sourceIp) : undefined
  if (!webhook) throw new Refusal('not_found', 'there is no such webhook')
  if (ctx.method === 'POST') return webhook
  ctx.set('Allow', 'POST')
  throw new Refusal('method_not_allowed', 'webhooks take POST')
}

async function receive(journey: Journey): Promise<object> {
  const { ctx, deps, webhook, sourceIp } = journey
  const { system } = deps.db

  await showRate(ctx, system, webhook)
  if (webhook.status !== 'Active') throw new Refusal('webhook_inactive', 'this webhook is not active')
  if (webhook.ip_whitelist.length > 0 && !ipMatches(sourceIp, webhook.ip_whitelist))
    throw new Refusal('ip_not_allowed', 'this address is not on the whitelist')
  if (webhook.blocked_until)
    throw new Refusal('blocked', 'this address is blocked for a while', {
      retryAfter: secondsUntil(webhook.blocked_until.getTime() / 1000),
    })

  const bytes = await readBody(ctx.req)
  journey.bytes = bytes
  const secrets = [webhook.secret_sealed, webhook.previous_secret_sealed ?? []].flat()
  const opened = secrets.map((sealed) => open(deps.secretsKey, sealed))
  if (!isVerified(webhook.verification, ctx.req.headers, bytes, opened)) {
    await countFailure(system, webhook, sourceIp)
    throw new Refusal('invalid_secret', 'the webhook secret is missing or wrong')
  }
  journey.verified = true

  await takeRate(ctx, system, webhook, sourceIp)
  await takeQuota(system, webhook)

  const type = contentType(ctx.req)
  const { payload, mapped } = await deps.compute.mapBody(webhook.organization_id, bytes, type, webhook)
  journey.mapped = mapped
  validate(webhook, mapped)
  return write(journey, payload, mapped, bytes)
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
    throw new Refusal('validation_failed', 'the payload does not make a valid record', {
      details: toDetails(checked.issues),
    })
  mapped.fields = checked.value as Record<string, unknown>
}

/** The one transaction: delivery, record with its history and event, run, log row. */
async function write(journey: Journey, payload: Payload, mapped: Mapped, bytes: Buffer): Promise<object> {
  const { deps, webhook, ctx } = journey
  const actor: Actor = { type: 'webhook', id: webhook.id }
  const fingerprint = deliveryFingerprint(ctx.req.headers, webhook.verification, payload, bytes)
  return deps.db.tenant(webhook.organization_id, actor, async (tx) => {
    const earlier = fingerprint && (await claimDelivery(tx, webhook.id, fingerprint))
    if (earlier) {
      const message = 'already received'
      const warnings = ['the sender sent this delivery before: nothing was done again']
      await insertLog(tx, success(journey, 'skipped', earlier.record_id, { message, warnings }))
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
    await insertLog(tx, success(journey, saved.action, saved.record.id, more))
    return { success: true, message, ...answer }
  })
}

function success(journey: Journey, action: Saved['action'], recordId: string, more: Partial<NewLog>): NewLog {
  const shown = { created: 'Created', updated: 'Updated', skipped: 'Skipped' } as const
  return { ...baseLog(journey), action: shown[action], record_id: recordId, ...more }
}

/** Never throws: a log row that cannot be written must not become the sender's problem. */
async function logRefusal(journey: Journey, refusal: Refusal): Promise<void> {
  const { deps, webhook } = journey
  const row: NewLog = {
    ...baseLog(journey),
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
        'a log row of an incoming webhook could not be written',
      ),
    )
}

function baseLog(journey: Journey): NewLog {
  const { ctx, webhook, sourceIp, started, bytes, verified, mapped } = journey
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
