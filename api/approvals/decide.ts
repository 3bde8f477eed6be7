import type Koa from 'koa'
import type { z } from 'zod'
import { SYSTEM } from '../../db/model/actor.ts'
import { invalid, notFound } from '../../db/model/errors.ts'
import { check } from '../../db/model/validate.ts'
import { readApprovalToken } from '../../db/process/approval-links.ts'
import { type Approval, answerApproval, getApproval, requireOpen } from '../../db/runs/approvals.ts'
import type { AppDeps } from '../deps.ts'
import { parseJson, readBody, refuseCompressed, requireJson, unsafeText } from '../http/body.ts'
import { answerError, methodNotAllowed } from '../http/errors.ts'
import { pagePolicy } from '../http/html-page.ts'
import { approvalPage, messagePage } from './page.ts'
import { decisionShape } from './shape.ts'

export const APPROVAL_PATH = '/approvals/{token}'
const PREFIX = '/approvals/'
const MAX_BYTES = 65_536
const PAGE_POLICY = pagePolicy()
const FORM = 'application/x-www-form-urlencoded'

/**
 * The link of an approval. GET shows the pending decision and changes nothing, so a program that follows links decides
 * nothing; POST decides. The token is the only credential: there is no session, and so no request forgery. Browsers get
 * a page, other clients JSON. Neither the token nor the path is logged.
 */
export async function handleApproval(ctx: Koa.Context, path: string, deps: AppDeps): Promise<void> {
  ctx.state.route = APPROVAL_PATH
  ctx.vary('Accept')
  ctx.set({ 'Referrer-Policy': 'no-referrer', 'X-Robots-Tag': 'noindex' })
  const wantsPage = ctx.accepts('json', 'html') === 'html'
  try {
    const approval = await (ctx.method === 'POST' ? decide(ctx, path, deps) : show(ctx, path, deps))
    ctx.status = 200
    if (wantsPage) answerPage(ctx, approvalPage(approval))
    else ctx.body = { object: 'approval', ...approval }
  } catch (error) {
    answerError(ctx, error, ctx.state.requestId, deps.log)
    if (!wantsPage) return
    const { message } = (ctx.body as { error: { message: string } }).error
    answerPage(
      ctx,
      messagePage(
        TITLES[ctx.status] ?? 'This did not work',
        `${message[0]?.toUpperCase()}${message.slice(1)}.`,
      ),
    )
  }
}

const TITLES: Record<number, string> = {
  404: 'Unknown link',
  409: 'Answered already',
  410: 'Too late',
}

function answerPage(ctx: Koa.Context, html: string): void {
  ctx.set('Content-Security-Policy', PAGE_POLICY)
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = html
}

/** The approval, pending or answered. Throws `gone` for a closed one. */
async function show(ctx: Koa.Context, path: string, deps: AppDeps): Promise<Approval> {
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(ctx, ['GET', 'POST'])
  const key = keyOf(ctx, path, deps)
  const approval = await deps.db.tenant(key.organization_id, SYSTEM, (tx) => getApproval(tx, key))
  if (approval.status === 'closed') requireOpen(approval)
  return approval
}

async function decide(ctx: Koa.Context, path: string, deps: AppDeps): Promise<Approval> {
  const { shown_to, ...key } = keyOf(ctx, path, deps)
  const sent = await readDecision(ctx)
  const issues = unsafeText(sent, ['body'])
  if (issues.length > 0) throw invalid(issues)
  const checked = check(decisionShape, sent, 'body')
  if ('issues' in checked) throw invalid(checked.issues)
  const { decision, comment = null } = checked.value as z.output<typeof decisionShape>
  return deps.db.tenant(key.organization_id, SYSTEM, (tx) =>
    answerApproval(tx, key, { decision, comment }, { type: 'link', id: null, ...(shown_to && { shown_to }) }),
  )
}

/**
 * The key of the approval in a token. Throws `not_found` for a token that the service did not issue, without a query.
 */
function keyOf(ctx: Koa.Context, path: string, { secretsKey }: AppDeps) {
  const key = readApprovalToken(secretsKey, path.slice(PREFIX.length))
  if (!key) throw notFound('approval', 'the link must be complete')
  ctx.state.organization = key.organization_id
  return key
}

/** The decision as JSON, or as a form of the page. */
async function readDecision(ctx: Koa.Context): Promise<unknown> {
  const isForm = ctx.is(FORM) === FORM
  if (isForm) refuseCompressed(ctx.req)
  else requireJson(ctx.req)
  const bytes = await readBody(ctx.req, MAX_BYTES)
  if (!isForm) return parseJson(bytes)
  const { comment = '', ...fields } = Object.fromEntries(new URLSearchParams(bytes.toString('utf8')))
  return { ...fields, comment: comment.trim() || null }
}
