import type Koa from 'koa'
import { fitted } from '../../db/incoming/apply.ts'
import { captureRequest } from '../../db/incoming/capture.ts'
import type { NewLog } from '../../db/incoming/logs.ts'
import type { Receiver } from '../../db/incoming/receiving.ts'
import type { Actor } from '../../db/model/actor.ts'
import { senderHeaders } from '../../db/model/incoming/mapping/senders/index.ts'
import { isWooCommercePingBody } from '../../db/model/incoming/mapping/senders/woocommerce.ts'
import type { Payload } from '../../db/model/incoming/parse-body.ts'
import { open } from '../../db/process/seal.ts'
import { settle } from '../../db/records/sets.ts'
import { Redactor } from '../../workflows/shared/redactor.ts'
import { UUID } from '../../workflows/shared/uuid.ts'
import { readBody } from '../http/body.ts'
import { clientIp, ipMatches, subnetOf } from '../http/client-ip.ts'
import { forLog } from '../http/errors.ts'
import { Refusal, secondsUntil, toRefusal } from './answer.ts'
import { baseLog, type Call, logRefusal, logSetUp } from './call.ts'
import { type Challenge, challengeOf, slackChallenge } from './challenge.ts'
import { decompressed } from './decompress.ts'
import { deliveryOf } from './delivery-id.ts'
import { countFailure, showRate, takeQuota, takeRate } from './limits.ts'
import { calledUrl, type Target, targetOf } from './request-url.ts'
import type { IncomingDeps } from './together.ts'
import { verify } from './verify.ts'

/**
 * /webhooks/incoming/{webhook_id}, from the bytes to the answer. Every outcome of a known webhook is logged. A success
 * is written in one transaction with its log row, so that a crash leaves all or nothing.
 */
export async function handleIncoming(
  ctx: Koa.Context,
  deps: IncomingDeps,
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
    // Requests may repeat them: Jotform sends the URL with its token in the body, a proxy in a header.
    const mask = new Redactor(secrets)
    call = { ctx, deps, webhook, target, sourceIp, started, secrets, mask, verified: false }
    ctx.state.organization = webhook.organization_id
    guard(call)
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

async function findWebhook(deps: IncomingDeps, { id }: Target, sourceIp: string): Promise<Receiver> {
  const webhook = UUID.test(id)
    ? await deps.together.findReceiver({ webhookId: id, source: subnetOf(sourceIp) })
    : undefined
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
function guard({ ctx, webhook, sourceIp }: Call): void {
  showRate(ctx, webhook)
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
  await takeRate(ctx, deps, webhook, sourceIp)
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

  await takeRate(ctx, deps, webhook, sourceIp)
  await takeQuota(deps, webhook)

  const content = await decompressed(ctx.req, bytes)
  call.content = content
  const body = { content, type: headers['content-type'] ?? '', headers: senderHeaders(headers) }
  const parsed = await deps.compute.mapBody(webhook.organization_id, body, webhook)
  // The payload becomes part of the run's history.
  const { payload, mapped } = mask.mayBeIn(content) ? mask.value(parsed) : parsed
  call.mapped = mapped
  if (mapped.isPing) return answerSetUp(call, `ping of ${mapped.sender}`)
  const challenge = webhook.verification.type === 'slack' ? slackChallenge(payload) : undefined
  if (challenge !== undefined) {
    await logSetUp(call, 'challenge: nothing was written')
    return { challenge }
  }
  if (webhook.capturing_until && webhook.capturing_until > new Date()) {
    const sample = await captureSample(call)
    if (sample) return sample
  }
  call.delivery = deliveryOf(headers, webhook.verification, bytes, payload)
  return write(call, payload)
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

/** Keeps the request as the sample of the webhook, if no other one was faster. */
async function captureSample(call: Call): Promise<object | undefined> {
  const { deps, webhook } = call
  const message = 'captured as a sample: nothing was written'
  const row: NewLog = { ...baseLog(call, true), action: 'Skipped', message }
  const actor: Actor = { type: 'webhook', id: webhook.id }
  const isCaptured = await deps.db.tenant(webhook.organization_id, actor, (tx) =>
    captureRequest(tx, webhook.id, row),
  )
  const entity = webhook.target_entity.toLowerCase()
  return isCaptured ? { success: true, message, record_id: null, entity, action: 'skipped' } : undefined
}

/** Writes the request, in one transaction with others that arrive at the same time. */
async function write(call: Call, payload: Payload): Promise<object> {
  const { webhook } = call
  const mapped = await settle(() => fitted(webhook, call.mapped!))
  const isUnfit = 'error' in mapped
  // A retry is answered as its first request, which may have been replayed through another mapping.
  if (isUnfit && !call.delivery!.has_delivery_id) throw mapped.error
  // Those of other settings are written by themselves, and an unfit one would fail with all others.
  const settings = `${webhook.id} ${webhook.updated_at.getTime()} ${isUnfit}`
  return call.deps.together.writes.add(settings, { call, payload, mapped })
}
