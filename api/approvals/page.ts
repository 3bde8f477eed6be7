import { createHash } from 'node:crypto'
import type { Approval } from '../../db/runs/approvals.ts'
import { MAX_COMMENT } from './shape.ts'

const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; margin: 3rem auto; padding: 0 1rem; color: #1a1a1a }
h1 { font-size: 1.4rem } pre { font: inherit; white-space: pre-wrap } .facts { color: #666; font-size: .9rem }
label { display: block; margin: 1.5rem 0 .25rem } textarea { width: 100%; min-height: 5rem; font: inherit; box-sizing: border-box }
button { font: inherit; padding: .5rem 1.5rem; margin: 1rem .5rem 0 0; border: 1px solid #888; border-radius: 4px; background: #fff; cursor: pointer }
button.approve { background: #1a7f37; border-color: #1a7f37; color: #fff }
`

/** No script, nothing from elsewhere, in no frame; the form posts to this service only. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character]!)

const page = (title: string, content: string) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body>${content}</body></html>`

/** What is to be decided, with a form; or what was decided. */
export function approvalPage(approval: Approval): string {
  const { title, message, workflow_name, expires_at } = approval
  const until = expires_at ? `, open until ${timeOf(expires_at)}` : ''
  return page(
    title,
    `<h1>${escaped(title)}</h1>
<p class="facts">Workflow ${escaped(workflow_name)}${approval.status === 'waiting' ? until : ''}</p>
${message === null ? '' : `<pre>${escaped(message)}</pre>`}
${approval.status === 'waiting' ? FORM : `<p>${escaped(outcomeOf(approval))}</p>`}`,
  )
}

const timeOf = (time: Date) => `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`

function outcomeOf({ status, answered_at, comment }: Approval): string {
  if (status === 'closed') return 'This request is closed: it has expired, or its run has ended.'
  const verb = status === 'approved' ? 'Approved' : 'Rejected'
  return `${verb}${answered_at ? ` on ${timeOf(answered_at)}` : ''}.${comment ? ` Comment: ${comment}` : ''}`
}

const FORM = `<form method="post">
<label for="comment">Comment (optional)</label><textarea id="comment" name="comment" maxlength="${MAX_COMMENT}"></textarea>
<button class="approve" name="decision" value="approved">Approve</button><button name="decision" value="rejected">Reject</button>
</form>`

export const messagePage = (title: string, message: string) =>
  page(title, `<h1>${escaped(title)}</h1><p>${escaped(message)}</p>`)
