import type Koa from 'koa'
import { z } from 'zod'
import { suppress } from '../../db/mails/suppressions.ts'
import { AppError, invalid, notFound } from '../../db/model/errors.ts'
import { check } from '../../db/model/validate.ts'
import { isFromOperator } from '../../db/process/operator-request.ts'
import { readUnsubscribeToken } from '../../db/process/unsubscribe-links.ts'
import type { AppDeps } from '../deps.ts'
import { parseJson, readBody, requireJson } from '../http/body.ts'
import { answerError, methodNotAllowed } from '../http/errors.ts'
import { htmlPage, pagePolicy } from '../http/html-page.ts'

const PREFIX = '/mails/'
const UNSUBSCRIBE = 'unsubscribe/'
const MAX_BYTES = 262_144
const PAGE_POLICY = pagePolicy()

const events = z.strictObject({
  events: z
    .array(z.object({ type: z.enum(['bounced', 'complained']), address: z.email().max(320) }))
    .min(1)
    .max(1_000),
})

/**
 * Answers below `/mails`: `/mails/unsubscribe/{token}`, the link in the header of a mail, and `/mails/events`, to which
 * the operator's mail server reports bounces and complaints.
 */
export async function handleMails(ctx: Koa.Context, path: string, deps: AppDeps): Promise<void> {
  const rest = path.slice(PREFIX.length)
  ctx.state.route = rest.startsWith(UNSUBSCRIBE) ? '/mails/unsubscribe/{token}' : path
  try {
    if (rest.startsWith(UNSUBSCRIBE)) await unsubscribe(ctx, rest.slice(UNSUBSCRIBE.length), deps)
    else if (rest === 'events') await noteEvents(ctx, deps)
    else throw notFound('path', 'see /docs')
  } catch (error) {
    answerError(ctx, error, ctx.state.requestId, deps.log)
  }
}

/**
 * One click (RFC 8058): mail programs send a POST without asking, people open the link and press the button. A program
 * that follows links changes nothing.
 */
async function unsubscribe(ctx: Koa.Context, token: string, deps: AppDeps): Promise<void> {
  ctx.set({
    'Referrer-Policy': 'no-referrer',
    'X-Robots-Tag': 'noindex',
    'Content-Security-Policy': PAGE_POLICY,
  })
  const wanted = readUnsubscribeToken(deps.secretsKey, token)
  if (!wanted) throw notFound('link', 'it must be complete')
  if (ctx.method === 'POST') {
    await readBody(ctx.req, MAX_BYTES)
    await suppress(deps.db.system, wanted.organization_id, 'unsubscribed', [wanted.address])
  } else if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(ctx, ['GET', 'POST'])
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = htmlPage('Unsubscribe', ctx.method === 'POST' ? DONE : ASK)
}

const ASK = `<h1>Unsubscribe</h1><form method="post"><button class="approve">Send me no further mails</button></form>`
const DONE = '<h1>Unsubscribed</h1><p>You will get no further mails of this sender.</p>'

/** Suppresses addresses for all organizations. For the operator's mail server. */
async function noteEvents(ctx: Koa.Context, deps: AppDeps): Promise<void> {
  if (ctx.method !== 'POST') throw methodNotAllowed(ctx, ['POST'])
  if (!isFromOperator(ctx.req, deps.config.MAIL_EVENTS_TOKEN))
    throw new AppError(
      'unauthorized',
      'mail events need MAIL_EVENTS_TOKEN as bearer token, or a request from this machine',
    )
  requireJson(ctx.req)
  const checked = check(events, parseJson(await readBody(ctx.req, MAX_BYTES)), 'body')
  if ('issues' in checked) throw invalid(checked.issues)
  const { events: reported } = checked.value as z.output<typeof events>
  for (const reason of ['bounced', 'complained'] as const) {
    const addresses = reported.filter(({ type }) => type === reason).map(({ address }) => address)
    if (addresses.length > 0) await suppress(deps.db.system, undefined, reason, addresses)
  }
  ctx.body = { object: 'mail_events', recorded: reported.length }
}
