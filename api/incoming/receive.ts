import type Koa from 'koa'
import { LRUCache } from 'lru-cache'
import { captureRequest } from '../../db/incoming/capture.ts'
import type { Receiver } from '../../db/incoming/receiving.ts'
import type { MappedPayload, MappedRequest } from '../../db/model/incoming/map-body.ts'
import { idOfSender, SENDERS } from '../../db/model/incoming/mapping/senders/index.ts'
import { isWooCommercePingBody } from '../../db/model/incoming/mapping/senders/woocommerce.ts'
import { hasNoEffect } from '../../db/model/incoming/mapping/types.ts'
import { nothingWritten } from '../../db/model/incoming/outcome.ts'
import { open } from '../../db/process/seal.ts'
import { Redactor } from '../../workflows/shared/redactor.ts'
import { UUID } from '../../workflows/shared/uuid.ts'
import { readBody } from '../http/body.ts'
import { clientIp, ipMatches, subnetOf } from '../http/client-ip.ts'
import { forLog } from '../http/errors.ts'
import { acceptBatch } from './accept-batch.ts'
import { acceptRecord } from './accept-record.ts'
import { Refusal, secondsUntil, skipped, toRefusal } from './answer.ts'
import type { Call } from './call.ts'
import { type Challenge, challengeOf, postedChallenge, repeatedHeader } from './challenge.ts'
import { countFailure, requireStorage, showRate, takeQuota, takeRate } from './limits.ts'
import { logRefusal, logSetUp, rowOf } from './log.ts'
import { deliveryOfRecord, mapRequest } from './map-request.ts'
import { readContent } from './read-content.ts'
import { calledUrl, type Target, targetOf } from './request-url.ts'
import type { IncomingDeps } from './together.ts'
import { type Verdict, verify } from './verify.ts'
import { answerOfWorkflow } from './workflow-answer.ts'

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
    const { secrets, mask } = openSecrets(deps, webhook)
    call = { ctx, deps, webhook, target, sourceIp, started, secrets, mask, verified: false }
    ctx.state.organization = webhook.organization_id
    showRate(call)
    const challenge = requireMethod(ctx, target, webhook, secrets)
    guard(call)
    // Unless a workflow answers with another one.
    ctx.status = 200
    ctx.body = challenge ? await answerChallenge(call, challenge) : await receive(call)
    deps.metrics.incomingRequests.inc({ outcome: 'accepted' })
  } catch (error) {
    const refusal = toRefusal(error)
    deps.metrics.incomingRequests.inc({ outcome: refusal.code })
    if (refusal.status >= 500)
      deps.log.error({ err: forLog(error), request_id: ctx.state.requestId }, 'incoming webhook failed')
    if (call) await logRefusal(call, refusal)
    if (refusal.retryAfter !== undefined) ctx.set('Retry-After', String(refusal.retryAfter))
    ctx.status = refusal.status
    ctx.body = refusal.body
  }
}

/** The steps of a POST, in their order. What is refused throws. @returns the body of the answer. */
async function receive(call: Call): Promise<object | string> {
  const bytes = await readBody(call.ctx.req)
  call.bytes = bytes
  const verdict = verifySender(call, bytes)
  if (verdict !== 'verified') return refuseSender(call, bytes, verdict)
  await takeRate(call)
  const repeated = repeatedHeader(call.webhook, call.ctx.req.headers, bytes)
  if (repeated) {
    call.ctx.set(...repeated)
    return writtenNothing(call, 'challenge')
  }
  await requireStorage(call)
  await takeQuota(call)
  const { isBatch, records } = await parseAndMap(call, bytes)
  const first = records[0]!
  const answer =
    (await answerSetUp(call, first, isBatch)) ??
    (await captureSample(call)) ??
    (await (isBatch
      ? acceptBatch(call, bytes, records)
      : answerOfWorkflow(call, (warning) => acceptRecord(call, bytes, first, warning))))
  return acknowledged(call, answer, first.mapped.sender)
}

/** The answer in the form that the sender takes for success, unless a workflow has given one. */
function acknowledged({ ctx, webhook }: Call, answer: object | string, sender = ''): object | string {
  const { acknowledgement } = SENDERS.get(webhook.sender ?? idOfSender({ name: sender })) ?? {}
  if (!acknowledgement || typeof answer === 'string' || ctx.status !== 200) return answer
  ctx.type = acknowledgement.type
  return acknowledgement.body
}

async function findWebhook(deps: IncomingDeps, { id }: Target, sourceIp: string): Promise<Receiver> {
  const webhook = UUID.test(id)
    ? await deps.together.findReceiver({ webhookId: id, source: subnetOf(sourceIp) })
    : undefined
  if (!webhook) throw new Refusal('not_found', 'webhook not found')
  return webhook
}

interface Secrets {
  /** The secret, and the one before it while both are valid. */
  secrets: string[]
  /** Requests may repeat them: Jotform sends the URL with its token in the body, a proxy in a header. */
  mask: Redactor
}

/** By the sealed secrets. To open them and to prepare the mask takes as long as to map a payload. */
const opened = new LRUCache<string, Secrets>({ max: 1_000 })

function openSecrets(deps: IncomingDeps, { secret_sealed, previous_secret_sealed }: Receiver): Secrets {
  const sealed = [secret_sealed, previous_secret_sealed ?? []].flat()
  const key = sealed.join(' ')
  const before = opened.get(key)
  if (before) return before
  const secrets = sealed.map((one) => open(deps.secretsKey, one))
  const found = { secrets, mask: new Redactor(secrets) }
  opened.set(key, found)
  return found
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
function guard(call: Call): void {
  const { webhook, sourceIp } = call
  if (webhook.status !== 'Active') throw new Refusal('webhook_inactive', 'the webhook is inactive')
  if (webhook.ip_whitelist.length > 0 && !ipMatches(sourceIp, webhook.ip_whitelist))
    throw new Refusal('ip_not_allowed', 'the IP address is not on the whitelist')
  if (webhook.blocked_until)
    throw new Refusal('blocked', 'the IP address is temporarily blocked', {
      retryAfter: secondsUntil(webhook.blocked_until.getTime() / 1000),
    })
}

async function answerChallenge(
  call: Call,
  { kind, verified, text, json }: Challenge,
): Promise<object | string> {
  // An unproven request counts against its address, as a wrong secret does. The minute of the webhook is for its sender.
  if (verified !== true) await countFailure(call)
  if (!verified) throw unverified('wrong')
  if (json) {
    await logSetUp(call, `${kind}: nothing was written`)
    return json
  }
  call.verified = true
  await takeRate(call)
  if (text === undefined) return writtenNothing(call, kind)
  await logSetUp(call, `${kind}: nothing was written`)
  // The text is the sender's: no browser may take it for a page.
  call.ctx.set('X-Content-Type-Options', 'nosniff')
  call.ctx.type = 'text/plain'
  return text
}

function verifySender(call: Call, bytes: Buffer): Verdict {
  const { ctx, deps, webhook, target, secrets } = call
  const { method, headers, url = '' } = ctx.req
  const called = calledUrl(deps, headers.host, url)
  const request = { method: method!, headers, url: called, token: target.token }
  const verdict = verify(webhook.verification, request, bytes, secrets)
  call.verified = verdict === 'verified'
  return verdict
}

type Unverified = Exclude<Verdict, 'verified'>

/**
 * Throws, but for the ping of WooCommerce: it has no signature, and unless it succeeds the webhook is not saved there.
 */
async function refuseSender(call: Call, bytes: Buffer, verdict: Unverified): Promise<object> {
  const { ctx, webhook } = call
  await countFailure(call)
  if (isWooCommercePingBody(ctx.req.headers, bytes)) return writtenNothing(call, 'ping of WooCommerce')
  // Some clients send the password only when they are asked for it.
  if (webhook.verification.type === 'basic') ctx.set('WWW-Authenticate', 'Basic realm="agx", charset="UTF-8"')
  throw unverified(verdict)
}

const UNVERIFIED = {
  missing: ['missing_secret', 'the webhook secret or signature is missing'],
  wrong: ['invalid_secret', 'the webhook secret or signature is wrong'],
  stale: ['stale_timestamp', 'the signature is right, but its timestamp is too old or in the future'],
} as const

function unverified(verdict: Unverified): Refusal {
  const [code, message] = UNVERIFIED[verdict]
  return new Refusal(code, message)
}

/** The records of the body, and what the mapping of the webhook makes of each. */
async function parseAndMap(call: Call, bytes: Buffer): Promise<MappedRequest> {
  await readContent(call, bytes)
  const request = await mapRequest(call)
  const [first] = request.records
  if (first && !request.isBatch) {
    call.mapped = first.mapped
    call.hidden = first.hidden
    call.delivery = deliveryOfRecord(call, bytes, first)
  }
  return request
}

/** The answer to a request that its sender makes when the webhook is set up; undefined for any other. */
async function answerSetUp(
  call: Call,
  { payload, mapped }: MappedPayload,
  isBatch: boolean,
): Promise<object | undefined> {
  if (isBatch) return undefined
  const challenge = postedChallenge(call.webhook.verification.type, payload, call.secrets)
  if (challenge === undefined) return hasNoEffect(mapped) ? writtenNothing(call, mapped.skip!) : undefined
  await logSetUp(call, 'challenge: nothing was written')
  return challenge
}

/** Logs a request that writes only its log row. @returns the answer. */
async function writtenNothing(call: Call, reason: string): Promise<object> {
  const message = nothingWritten(reason, call.webhook)
  await logSetUp(call, message)
  return skipped(call, message)
}

/** Keeps the request as the sample of its webhook, if one is wanted and no other request was faster. */
async function captureSample(call: Call): Promise<object | undefined> {
  const { deps, webhook } = call
  if (!webhook.capturing_until || webhook.capturing_until <= new Date()) return undefined
  const message = 'captured as a sample: nothing was written'
  const row = rowOf(call, { action: 'Skipped', message }, { keepsRest: true })
  const actor = { type: 'webhook', id: webhook.id } as const
  const isCaptured = await deps.db.tenant(webhook.organization_id, actor, (tx) =>
    captureRequest(tx, webhook.id, row),
  )
  return isCaptured ? skipped(call, message) : undefined
}
