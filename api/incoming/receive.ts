import type { IncomingMessage } from 'node:http'
import type Koa from 'koa'
import { insertLog, type NewLog } from '../../db/incoming/logs.ts'
import { claimDelivery, findReceiver, type Receiver, storeDelivery } from '../../db/incoming/receiving.ts'
import type { Actor, Tenant } from '../../db/postgres/tenancy.ts'
import { open } from '../../db/seal.ts'
import type { AppDeps } from '../deps.ts'
import { readBody } from '../http/body.ts'
import { clientIp, ipMatches, subnetOf } from '../http/client-ip.ts'
import { forLog } from '../http/errors.ts'
import { traceOf } from '../http/trace.ts'
import { Refusal, secondsUntil, toDetails, toRefusal } from './answer.ts'
import { baseLog, type Call, logRefusal, logSetUp } from './call.ts'
import { type Challenge, challengeOf, slackChallenge } from './challenge.ts'
import { fitCustomFields, fitMapped } from './check-mapped.ts'
import { deliveryFingerprint } from './delivery-id.ts'
import { countFailure, showRate, takeQuota, takeRate } from './limits.ts'
import { senderHeaders } from './mapping/senders/index.ts'
import { isWooCommercePingBody } from './mapping/senders/woocommerce.ts'
import type { Mapped } from './mapping/types.ts'
import { SecretMask } from './mask.ts'
import type { Payload } from './parse-body.ts'
import { calledUrl, type Target, targetOf } from './request-url.ts'
import { type Saved, saveMapped } from './save.ts'
import { startWorkflow } from './start-workflow.ts'
import { verify } from './verify.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * /webhooks/incoming/{webhook_id}, from the bytes to the answer. Every outcome of a known webhook is logged. A success
 * is written in one transaction with its log row, so that a crash leaves all or nothing.
 */
export async function handleIncoming(
  ctx: Koa.Context,
  deps: AppDeps,
  path: string,
  search: string,
): Promise<void> {
  const started = performance.now()
  ctx.state.route = '/webhooks/incoming/{webhook_id}'
  const sourceIp = clientIp(ctx.req, deps.config.TRUSTED_PROXIES)
  const target = targetOf(path, search)
  let call: Call | undefined
  try {
    const webhook = await findWebhook(deps, target, sourceIp)
    const sealed = [webhook.secret_sealed, webhook.previous_secret_sealed ?? []].flat()
    const secrets = sealed.map((one) => open(deps.secretsKey, one))
    const challenge = requireMethod(ctx, target, webhook, secrets)
    const mask = new SecretMask(secrets)
    call = { ctx, deps, webhook, target, sourceIp, started, secrets, mask, verified: false }
    ctx.state.organization = webhook.organization_id
    await guard(call)
    ctx.body = challenge ? await answerChallenge(call, challenge) : await receive(call)
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

async function findWebhook(deps: AppDeps, { id }: Target, sourceIp: string): Promise<Receiver> {
  const webhook = UUID.test(id) ? await findReceiver(deps.db.system, id, subnetOf(sourceIp)) : undefined
  if (!webhook) throw new Refusal('not_found', 'webhook not found')
  return webhook
}

/** The challenge of a GET request. Throws method_not_allowed for what is neither that nor a POST. */
function requireMethod(ctx: Koa.Context, target: Target, webhook: Receiver, secrets: string[]) {
  if (ctx.method === 'POST') return undefined
  const isRead = ctx.method === 'GET' || ctx.method === 'HEAD'
  const challenge = isRead ? challengeOf(target, webhook, secrets) : undefined
  if (challenge) return challenge
  ctx.set('Allow', 'POST')
  throw new Refusal('method_not_allowed', 'webhooks accept POST only')
}

/** Throws for a request that is refused whoever sent it. */
async function guard({ ctx, deps, webhook, sourceIp }: Call): Promise<void> {
  await showRate(ctx, deps.db.system, webhook)
  if (webhook.status !== 'Active') throw new Refusal('webhook_inactive', 'the webhook is inactive')
  if (webhook.ip_whitelist.length > 0 && !ipMatches(sourceIp, webhook.ip_whitelist))
    throw new Refusal('ip_not_allowed', 'the IP address is not on the whitelist')
  if (webhook.blocked_until)
    throw new Refusal('blocked', 'the IP address is temporarily blocked', {
      retryAfter: secondsUntil(webhook.blocked_until.getTime() / 1000),
    })
}

async function answerChallenge(call: Call, { kind, verified, text }: Challenge): Promise<object | string> {
  const { ctx, deps, webhook, sourceIp } = call
  if (!verified) {
    await countFailure(deps.db.system, webhook, sourceIp)
    throw unverified('wrong')
  }
  call.verified = true
  await takeRate(ctx, deps.db.system, webhook, sourceIp)
  if (text === undefined) return answerSetUp(call, kind)
  await logSetUp(call, `${kind}: nothing was written`)
  // The text is the sender's: no browser may take it for a page.
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.type = 'text/plain'
  return text
}

async function receive(call: Call): Promise<object> {
  const { ctx, deps, webhook, sourceIp, secrets, mask } = call
  const { system } = deps.db

  const bytes = await readBody(ctx.req)
  call.bytes = bytes
  const { method, headers, url = '' } = ctx.req
  const request = {
    method: method!,
    headers,
    url: calledUrl(deps, headers.host, url),
    token: call.target.token,
  }
  const verdict = verify(webhook.verification, request, bytes, secrets)
  if (verdict !== 'verified') {
    await countFailure(system, webhook, sourceIp)
    // Without a signature: it would not verify, and WooCommerce would not save the webhook.
    if (isWooCommercePingBody(headers, bytes)) return answerSetUp(call, 'ping of WooCommerce')
    // Some clients send the password only when they are asked for it.
    if (webhook.verification.type === 'basic')
      ctx.set('WWW-Authenticate', 'Basic realm="agx", charset="UTF-8"')
    throw unverified(verdict)
  }
  call.verified = true

  await takeRate(ctx, system, webhook, sourceIp)
  await takeQuota(system, webhook)

  const body = { bytes, type: contentType(ctx.req), headers: senderHeaders(headers) }
  const parsed = await deps.compute.mapBody(webhook.organization_id, body, webhook)
  // The payload becomes part of the run's history.
  const { payload, mapped } = mask.isIn(bytes) ? mask.deep(parsed) : parsed
  call.mapped = mapped
  if (mapped.isPing) return answerSetUp(call, `ping of ${mapped.sender}`)
  const challenge = webhook.verification.type === 'slack' ? slackChallenge(payload) : undefined
  if (challenge !== undefined) {
    await logSetUp(call, 'challenge: nothing was written')
    return { challenge }
  }
  call.mapped = fitted(webhook, mapped)
  return write(call, payload, bytes)
}

const UNVERIFIED = {
  missing: ['missing_secret', 'the webhook secret or signature is missing'],
  wrong: ['invalid_secret', 'the webhook secret or signature is wrong'],
  stale: ['stale_timestamp', 'the signature is right, but its timestamp is more than five minutes off'],
} as const

function unverified(verdict: keyof typeof UNVERIFIED): Refusal {
  const [code, message] = UNVERIFIED[verdict]
  return new Refusal(code, message)
}

/** A set-up request writes only its log row. */
async function answerSetUp(call: Call, kind: string): Promise<object> {
  const entity = call.webhook.target_entity.toLowerCase()
  const message = `${kind}: nothing was written`
  await logSetUp(call, message)
  return { success: true, message, record_id: null, entity, action: 'skipped' }
}

function contentType(request: IncomingMessage): string {
  const encoding = request.headers['content-encoding']
  if (encoding && encoding !== 'identity')
    throw new Refusal('unsupported_media_type', 'compressed bodies are not accepted')
  return request.headers['content-type'] ?? ''
}

function fitted(webhook: Receiver, mapped: Mapped): Mapped {
  const fit = fitMapped(webhook, mapped)
  if (!('issues' in fit)) return fit.mapped
  throw new Refusal('validation_failed', reason(webhook, mapped), { details: toDetails(fit.issues) })
}

function reason({ target_entity }: Receiver, { sender, fields, company_name }: Mapped): string {
  if (Object.keys(fields).length > 0 || company_name !== undefined)
    return 'the payload does not map to a valid record'
  return `the payload${sender ? ` of ${sender}` : ''} has nothing of a ${target_entity.toLowerCase()}`
}

/** Writes the delivery, the record with its history and event, the run and the log row in one transaction. */
async function write(call: Call, payload: Payload, bytes: Buffer): Promise<object> {
  const { deps, webhook, ctx } = call
  const actor: Actor = { type: 'webhook', id: webhook.id }
  const fingerprint = deliveryFingerprint(ctx.req.headers, webhook.verification, payload, bytes)
  ctx.state.traceId = traceOf(ctx.req.headers.traceparent)
  const perform = async (tx: Tenant) => {
    const earlier = fingerprint && (await claimDelivery(tx, webhook.id, fingerprint))
    if (earlier) {
      const message = 'already received'
      const warnings = ['duplicate delivery: nothing was written']
      await insertLog(tx, success(call, 'skipped', earlier.record_id, { message, warnings }))
      return { success: true, message, ...earlier }
    }
    const mapped = await withFittingCustomFields(tx, call)
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
    return { success: true, message, ...answer, ...(warnings.length > 0 ? { warnings } : {}) }
  }
  return deps.db.tenant(webhook.organization_id, actor, perform, ctx.state.traceId)
}

async function withFittingCustomFields(tx: Tenant, call: Call): Promise<Mapped> {
  const mapped = call.mapped!
  if (Object.keys(mapped.fields.custom_fields as object).length > 0)
    // The write checks them again: other issues refuse the payload there, with those of the record.
    call.mapped = (await fitCustomFields(tx, call.webhook, mapped)).mapped
  return call.mapped!
}

function success(call: Call, action: Saved['action'], recordId: string, more: Partial<NewLog>): NewLog {
  const shown = { created: 'Created', updated: 'Updated', skipped: 'Skipped' } as const
  return { ...baseLog(call), action: shown[action], record_id: recordId, ...more }
}
